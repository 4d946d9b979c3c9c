"""How a job of several processes starts, what watches over it, and how it ends when one of them fails."""
