"""What `Module` is made of: its members, hooks and state, and what errors say of the module that they come from."""
