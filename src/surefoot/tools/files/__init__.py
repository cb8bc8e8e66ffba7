"""Built-in file tools; `toolset.file_tools` declares them."""
