import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The top of the project. */
export const ROOT: string = join(import.meta.dirname, '../..');

/** The text of a page, by its path from the top of the project. */
export function readPage(path: string): Promise<string> {
  return readFile(join(ROOT, path), 'utf8');
}

/** The contents of a page's code blocks in one language, in their order. */
export function codeBlocks(page: string, language: string): string[] {
  return [...page.matchAll(/^```(\w*)\n(.*?)^```$/gms)]
    .filter(([, name]) => name === language)
    .map(([, , content = '']) => content);
}

/** The paths of all pages, from the top of the project. */
export async function allPages(): Promise<string[]> {
  const pages: string[] = [];
  for await (const page of glob('**/*.md', { cwd: ROOT, exclude: isForeign })) pages.push(page);
  return pages.toSorted();
}

/** What lies within the project and is not of it. */
function isForeign(path: string): boolean {
  return path.includes('node_modules') || path.includes('quickstart-data');
}
