/**
 * Runs commands on a machine that has never seen this project: `npm run fresh-machine -- [--user] [--suite NAME]
 * [COMMAND...]`.
 *
 * The machine is a minimal Debian in its own mount and PID namespaces, with a clone of the committed HEAD. It has
 * Node, npm and the registry settings of this machine. Without a command, it runs the README's commands one by one.
 * Afterwards it prints what each command left behind. Exits with 0 if every command succeeded and nothing was left
 * behind.
 *
 * --user runs them as an ordinary user with sudo, who installs the Debian packages that set-up names.
 * --suite names the machine's Debian, such as trixie. Default: this machine's release.
 */
import { join } from 'node:path';
import { installBaseSystem, openMachineDirectory } from './fresh-machine/base-system.ts';
import { parseCommandLine } from './fresh-machine/command-line.ts';
import { prepareMachine } from './fresh-machine/machine.ts';
import { namedInstallation } from './fresh-machine/named-installation.ts';
import { runInside } from './fresh-machine/run-inside.ts';

const { user, suite, commands } = parseCommandLine(process.argv.slice(2));

await using directory = await openMachineDirectory('fresh-machine');
const base = await installBaseSystem(suite);
const machine = await prepareMachine({ base, root: join(directory.path, 'machine'), user });
let good = true;
for (const command of commands) good = (await succeeds(command)) && good;
process.exitCode = good ? 0 : 1;

/** Runs a command. If it names Debian packages to install, installs them and runs it once more. */
async function succeeds(command: readonly string[]): Promise<boolean> {
  let { status, standardError, leftBehind } = await runInside(machine, command);
  const installation = namedInstallation(standardError);
  if (status !== 0 && machine.user && installation !== undefined) {
    const installed = await runInside(machine, ['sh', '-c', installation]);
    if (installed.status === 0) ({ status, leftBehind } = await runInside(machine, command));
  }
  const title = command.join(' ');
  console.log(`fresh-machine: "${title}" ended with ${status}`);
  if (leftBehind.length === 0) console.log(`fresh-machine: "${title}" left nothing behind`);
  else console.log(`fresh-machine: "${title}" left behind:\n${leftBehind.join('\n')}`);
  return status === 0 && leftBehind.length === 0;
}
