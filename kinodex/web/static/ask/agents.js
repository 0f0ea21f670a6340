// The agents of kinodex in plain words, beside the line that a server gives about each.

const PLAIN = {
  eea: "Finds the parts that fit your words, opens the most promising one, looks at a few pictures of it, and goes on from there until they show the answer. A good first choice.",
  vca: "The same without a search by words first: it looks at pictures spread over the video and opens what seems most useful.",
  longvideoagent: "Reads what is said and described, and has the pictures looked at only where that helps. Good for films with speech.",
  videoseek: "Thinks before each step: looks over everything, skims a long stretch, or watches a short one closely.",
  videoagent2: "Puts the whole video into words, makes a plan, and checks details until it is sure.",
  videoagent: "Puts a few pictures into words, and more where something is missing.",
  videotree: "Puts pictures from all over the video into words, more of them where they matter.",
  uniform: "Looks at a few pictures, evenly spaced, once. Quick and cheap, for comparison.",
  blind: "Looks at nothing, and guesses from the question alone. For comparison only.",
  random: "Picks one of the options by chance. For comparison only.",
};

/** An agent in plain words, and the line of the server where that says more. */
export const explained = ({ name, summary }) => ({ plain: PLAIN[name] ?? summary, summary: name in PLAIN ? summary : "" });
