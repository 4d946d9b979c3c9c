names: str
