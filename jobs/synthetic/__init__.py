"""Sample films with known answers, the toy CLIP, the demo."""
