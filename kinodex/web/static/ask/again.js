// Requests of this tab, kept so that a question that failed can be changed and sent once more.

const name = (question) => `kinodex asked ${question}`;

export const keepAsked = (question, body) => sessionStorage.setItem(name(question), JSON.stringify(body));

/** The request of a question that this tab sent; null otherwise. */
export const asked = (question) => JSON.parse(sessionStorage.getItem(name(question)) ?? "null");
