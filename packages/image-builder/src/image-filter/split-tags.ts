/** Splits `tags` of an image's metadata, which are separated by commas. */
export function splitTags(text: string = ''): string[] {
  return text
    .split(',')
    .map((tag) => tag.trim())
    .filter(Boolean);
}
