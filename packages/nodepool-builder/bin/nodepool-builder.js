#!/usr/bin/env -S node --max-semi-space-size=1
// Uploads and plans create much garbage. With a growing young generation, and a heap that grows to three times the
// memory in use, the process would take more memory.
// This file uses only the syntax of old Node.js releases, and imports the rest once it has checked the release.
import { readFileSync } from 'node:fs';
import module from 'node:module';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';

const { engines, version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const [major, minor] = engines.node.match(/\d+/g).map(Number);
const [ownMajor, ownMinor] = process.versions.node.split('.').map(Number);

if (ownMajor < major || (ownMajor === major && ownMinor < minor)) {
  console.error(
    `nodepool-builder needs Node.js ${major}.${minor} or later, but this is ${process.versions.node}; install a later one`,
  );
  process.exitCode = 1;
} else if (/^(?:-V|--version)$/.test(process.argv.slice(2).join(' '))) {
  // Does the same as main, in half the time.
  process.stdout.on('error', (error) => {
    if (error.code === 'EPIPE') return;
    console.error(
      `nodepool-builder: cannot write the output: ${error.message}; free space, or redirect it elsewhere`,
    );
    process.exitCode = 1;
  });
  process.stdout.write(`${version}\n`);
} else {
  // Node.js 22 warns that its SQLite is experimental, so that image lists would begin with that warning.
  const { emitWarning } = process;
  process.emitWarning = (warning, ...rest) => {
    if (!String(warning).startsWith('SQLite is an experimental feature')) emitWarning(warning, ...rest);
  };
  // Not at once: short commands would spend a fifth of their time on collections. Unknown flags only print a message.
  setTimeout(() => setFlagsFromString('--heap-growing-percent=30'), 1000).unref();
  // Compiled code is stored in this package, which only users who may change the program can write, and is removed with
  // it. If this user cannot write to it, the command compiles at each start.
  module.enableCompileCache(fileURLToPath(new URL('../.cache', import.meta.url)));
  const { main } = await import('../dist/commands/main.js');
  process.exitCode = await main(process.argv.slice(2));
}
