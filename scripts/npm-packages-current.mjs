// Exit status 0 if node_modules holds what package-lock.json names. Written for any Node: it runs before the project's
// own is installed. It compares contents, not times, because git and npm change times.
import { readFileSync } from 'node:fs';

const packagesOf = (file) => JSON.parse(readFileSync(file, 'utf8')).packages;

try {
  const installed = packagesOf('node_modules/.package-lock.json');
  const wanted = Object.entries(packagesOf('package-lock.json'));
  const current = wanted.every(
    ([path, { version, optional }]) => path === '' || optional || installed[path]?.version === version,
  );
  process.exitCode = current ? 0 : 1;
} catch (error) {
  if (error.code !== 'ENOENT') throw error;
  process.exitCode = 1;
}
