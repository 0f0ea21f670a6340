"""What is added later: captions, detections, speech, agent clip captions."""
