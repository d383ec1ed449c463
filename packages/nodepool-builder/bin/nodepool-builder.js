#!/usr/bin/env -S node --max-semi-space-size=1
// Uploads leave much garbage that is small and dies young: a young generation that grows with it takes more memory.
import { main } from '../dist/main.js';

// Node.js 22 warns that its SQLite is experimental; image lists would begin with that warning.
const { emitWarning } = process;
process.emitWarning = (warning, ...rest) => {
  if (!String(warning).startsWith('SQLite is an experimental feature')) emitWarning(warning, ...rest);
};

process.exitCode = await main(process.argv.slice(2));
