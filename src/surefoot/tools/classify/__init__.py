"""How a shell line, a request or a statement gets its class and reach. Pure rooms."""
