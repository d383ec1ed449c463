import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { stripVTControlCharacters } from 'node:util';

/** Columns of the terminal. */
export const COLUMNS = 100;

/**
 * Variables that make programs use colours regardless of the terminal, or detect a test. A person's shell has none of
 * them.
 */
const FOREIGN_VARIABLES: readonly string[] = [
  'CI',
  'FORCE_COLOR',
  'NODE_DISABLE_COLORS',
  'NODE_TEST_CONTEXT',
  'NO_COLOR',
];

/** Characters after the escape character of a colour or another style. */
const STYLE = /^\[[\d;]+m/;

/** Output as the user of a terminal saw it. */
export interface Seen {
  readonly status: number | null;
  /** Lines that remained on screen, without styles. */
  readonly lines: readonly string[];
  /** Widest line, including replaced lines, but without lines of npm itself. */
  readonly widest: string;
  /** Max time without output, in milliseconds, and the line after it. */
  readonly silence: { readonly time: number; readonly before: string };
  readonly isStyled: boolean;
}

/**
 * Runs a command in a terminal of 100 columns with colours, which script(1) opens.
 *
 * @param environment variables of the command, in addition to those of this process
 * @param onLine - receives each line that remains on screen
 */
export async function runInTerminal(
  command: readonly string[],
  environment: NodeJS.ProcessEnv,
  onLine: (line: string) => void = () => {},
): Promise<Seen> {
  const line = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  const script = [
    '--quiet',
    '--return',
    '--command',
    `stty cols ${COLUMNS} rows 30; exec ${line}`,
    '/dev/null',
  ];
  const inherited = Object.entries(process.env).filter(([name]) => !FOREIGN_VARIABLES.includes(name));
  const env = { ...Object.fromEntries(inherited), TERM: 'xterm-256color', ...environment };
  const child = spawn('script', script, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  const lines: string[] = [];
  let [rest, widest, isStyled, lastAt] = ['', '', false, performance.now()];
  let silence = { time: 0, before: '' };
  for await (const chunk of child.stdout.setEncoding('utf8') as AsyncIterable<string>) {
    const time = performance.now() - lastAt;
    lastAt = performance.now();
    if (time > silence.time)
      silence = { time, before: stripVTControlCharacters(chunk).trim().slice(0, COLUMNS) };
    rest += chunk;
    const ended = rest.split('\n');
    rest = ended.pop() ?? '';
    for (const text of ended) {
      isStyled ||= text.split('\u001B').some((sequence) => STYLE.test(sequence));
      const states = text.replace(/\r+$/, '').split('\r').map(stripVTControlCharacters);
      for (const state of states)
        if (state.length > widest.length && !state.startsWith('npm ')) widest = state;
      const last = states.at(-1) ?? '';
      lines.push(last);
      onLine(last);
    }
  }
  const [status] = (child.exitCode === null ? await once(child, 'exit') : [child.exitCode]) as [
    number | null,
  ];
  child.stdin.destroy();
  return { status, lines, widest, silence, isStyled };
}
