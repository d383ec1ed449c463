/** A table in Markdown. */
export function markdownTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  return [header, header.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n');
}

/**
 * Returns a page with other text between two of its lines.
 *
 * @throws Error if the page lacks one of the lines
 */
export function replaceSection(page: string, begin: string, end: string, text: string): string {
  const from = page.indexOf(begin);
  const to = page.indexOf(end, from);
  if (from === -1 || to === -1) throw new Error(`the page has no "${begin}" with "${end}" after it`);
  return `${page.slice(0, from + begin.length)}\n${text}\n${page.slice(to)}`;
}
