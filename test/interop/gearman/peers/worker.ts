/** Our worker as a program; README.md has what it is told and what it says. */
import { startOurWorker } from '../matrix/our-worker.ts';

const [port, name = ''] = process.argv.slice(2);
startOurWorker(Number(port), name, process.stdin, process.stdout);
