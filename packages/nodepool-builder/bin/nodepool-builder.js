#!/usr/bin/env -S node --max-semi-space-size=1
// Uploads leave much garbage that is small and dies young: a young generation that grows with it takes more memory.
import { main } from '../dist/main.js';

// Node.js 22 says on standard error that its SQLite is an experiment, to everybody who looks at an image list.
const { emitWarning } = process;
process.emitWarning = (warning, ...rest) => {
  if (!String(warning).startsWith('SQLite is an experimental feature')) emitWarning(warning, ...rest);
};

process.exitCode = await main(process.argv.slice(2));
