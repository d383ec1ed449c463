// Exits with 0 if node_modules matches package-lock.json. Runs on any Node, because the project's own is not installed
// yet. It compares contents instead of times, because git and npm change times.
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
