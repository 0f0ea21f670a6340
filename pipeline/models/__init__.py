"""Local transformers models: captions, detections, Whisper."""
