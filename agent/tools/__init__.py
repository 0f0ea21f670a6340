"""Tools that agents of several papers call: captions on demand, detection, uniform frames.

They act on an environment and leave what they found in the session.
"""
