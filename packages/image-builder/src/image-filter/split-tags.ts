/** The tags in `tags` of an image's metadata: a text with commas between them. */
export function splitTags(text: string = ''): string[] {
  return text
    .split(',')
    .map((tag) => tag.trim())
    .filter(Boolean);
}
