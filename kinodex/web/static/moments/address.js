// Addresses of searches for moments: of a library, and of one video, whose page shows them on its time line.

/** `fields` are those of the form: `text`, `video`, `in`, `by` (an agent) and `question`, the key of what it was asked. */
export const momentsAddress = (key, fields) =>
  `#/library/${key}/moments/${encodeURIComponent(new URLSearchParams(fields))}`;

/** The page of a video at a time, with a search for moments in it where there are `fields` of one. */
export function videoAddress(key, videoId, time, fields = null) {
  const place = `#/library/${key}/video/${encodeURIComponent(videoId)}/${time}`;
  const { video, ...inner } = fields ?? {};
  return inner.text ? `${place}/${encodeURIComponent(new URLSearchParams(inner))}` : place;
}

/** The fields that an address holds. */
export const fieldsOf = (inner) => Object.fromEntries(new URLSearchParams(inner ?? ""));
