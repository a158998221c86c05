"""Order and place: which step when, where records lie, what MLflow is told, what the command line answers."""
