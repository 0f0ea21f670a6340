/** An agent in plain words, and the line about it where that says more. */
export const explained = ({ summary, plain = "" }) => (plain ? { plain, summary } : { plain: summary, summary: "" });
