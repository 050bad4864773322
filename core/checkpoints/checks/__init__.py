"""What a checkpoint has to pass: its files, tokenizer and size before it is built, its weights and attention after."""
