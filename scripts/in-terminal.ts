/**
 * Runs an example as a newcomer does, in a terminal of 100 columns: `node scripts/in-terminal.ts [--no-color]
 * COMMAND...`. Exits with the command's status, or with 1 if a line is wider than the terminal, nothing appears for
 * twenty seconds, colours are missing (or, with --no-color, which sets NO_COLOR, appear), or a line names a file in the
 * checkout by its absolute path or a job by its handle.
 */
import { join } from 'node:path';
import { COLUMNS, runInTerminal } from './quickstart/terminal.ts';

/**
 * Max time without output, in milliseconds. Progress lines appear every few seconds, so that no reader waits longer
 * than ten. They are delayed if tests run alongside the example, as in CI.
 */
const SILENCE = 20_000;

const CHECKOUT = join(import.meta.dirname, '..');

const words = process.argv.slice(2);
const withoutColour = words[0] === '--no-color';
const command = withoutColour ? words.slice(1) : words;
const seen = await runInTerminal(command, withoutColour ? { NO_COLOR: '1' } : {}, (line) =>
  console.log(line),
);

const { widest, silence, isStyled } = seen;
const faults = [
  ...(widest.length > COLUMNS ? [`a line has ${widest.length} columns: ${widest}`] : []),
  ...(silence.time > SILENCE
    ? [`nothing appeared for ${Math.round(silence.time / 1000)} s, before "${silence.before}"`]
    : []),
  ...(isStyled === withoutColour ? [withoutColour ? 'NO_COLOR has no effect' : 'there are no colours'] : []),
  ...seen.lines
    .filter((line) => line.includes(`${CHECKOUT}/`) || /\bjob H:/.test(line))
    .map((line) => `this line contains internal terms: ${line}`),
];
const longest = `the longest silence took ${(silence.time / 1000).toFixed(1)} s`;
console.log(`in-terminal: the widest line has ${widest.length} of ${COLUMNS} columns; ${longest}`);
for (const fault of faults) console.error(`in-terminal: ${fault}`);
process.exitCode = seen.status === 0 && faults.length > 0 ? 1 : (seen.status ?? 1);
