#!/usr/bin/env -S node --max-semi-space-size=1
// Uploads leave much garbage that is small and dies young: a young generation that grows with it takes 20 MB more.
import { main } from '../dist/main.js';

process.exitCode = await main(process.argv.slice(2));
