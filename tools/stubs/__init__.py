"""What the generated type stubs say: types by name of parameter, results, calls with several forms, and their text."""
