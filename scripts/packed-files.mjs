/**
 * Copies the documents and examples of the project into a package before npm packs it, and removes them afterwards:
 * `node ../../scripts/packed-files.mjs copy|remove`, in the directory of the package.
 */
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');

for (const name of ['docs', 'examples']) {
  rmSync(name, { recursive: true, force: true }); // npm may have been killed during the last run
  const options = { recursive: true, filter: (path) => !path.startsWith(join(root, 'docs/api')) };
  if (process.argv[2] === 'copy') cpSync(join(root, name), name, options);
}
