"""Programs that run inside another tool's environment: `python WORKER OUTPUT_FOLDER MODEL_FOLDER...`."""
