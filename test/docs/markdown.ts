import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Root directory of the project. */
export const ROOT: string = join(import.meta.dirname, '../..');

/** Reads a page by its path from the root. */
export function readPage(path: string): Promise<string> {
  return readFile(join(ROOT, path), 'utf8');
}

/** Returns the contents of a page's code blocks in one language, in order. */
export function codeBlocks(page: string, language: string): string[] {
  return [...page.matchAll(/^```(\w*)\n(.*?)^```$/gms)]
    .filter(([, name]) => name === language)
    .map(([, , content = '']) => content);
}

/** Lists the paths of all pages, from the root. */
export async function allPages(): Promise<string[]> {
  const pages: string[] = [];
  for await (const page of glob('**/*.md', { cwd: ROOT, exclude: isForeign })) pages.push(page);
  return pages.toSorted();
}

/** Returns whether a path is outside the project's sources. */
function isForeign(path: string): boolean {
  // npm pack puts copies of documents and examples into the package.
  return /node_modules|quickstart-data|^packages\/nodepool-builder\/(?:docs|examples)\b/.test(path);
}
