"""The search for inputs on which a rule does badly: the game, where it starts, and the climb."""
