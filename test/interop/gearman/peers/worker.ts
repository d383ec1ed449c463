/** Runs our worker as a program. README.md describes its input and output. */
import { startOurWorker } from '../matrix/our-worker.ts';

const [port, name = ''] = process.argv.slice(2);
startOurWorker(Number(port), name, process.stdin, process.stdout);
