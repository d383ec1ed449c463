import type { Command } from 'commander';
import { loadConfiguration } from '../configuration/load.ts';
import type { Modules } from '../configuration/modules.ts';
import { deliver } from '../daemon/notifications/delivery.ts';
import { makeEvent } from '../daemon/notifications/event.ts';
import { thisUser } from '../site/control-jobs.ts';
import { CommandError, choiceOf, errorLine } from '../terms/command-error.ts';
import { configOption, exampleOf } from './options.ts';
import { untilStopSignal } from './stop-signal.ts';

/** `notify-test`: sends a sample event to a receiver. */
export function register(program: Command, modules: () => Promise<Modules>): void {
  program
    .command('notify-test')
    .argument('<name>', 'entry of notifications')
    .description(
      'Sends the sample event of a failed build to a receiver of notifications, once, and prints its response. The id ' +
        'of the event begins with "test/".',
    )
    .addOption(configOption())
    .addHelpText('after', exampleOf('notify-test chat -c nodepool.yaml'))
    .action((name: string, { config }: { readonly config: string }) =>
      untilStopSignal(async (signal) => notifyTest(name, config, await modules(), signal)),
    );
}

async function notifyTest(
  name: string,
  config: string,
  modules: Modules,
  signal: AbortSignal,
): Promise<void> {
  const { configuration } = await loadConfiguration(config, { modules });
  const { notifications } = configuration;
  const entry = notifications.find((one) => one.name === name);
  if (entry === undefined) {
    const names = notifications.map((one) => one.name);
    const remedy = names.length === 0 ? 'add it to notifications' : choiceOf(names);
    throw new CommandError(`there is no notification "${name}"; ${remedy}`, 'not-found');
  }
  const time = new Date().toISOString();
  const event = makeEvent({
    id: `test/${time}`,
    event: 'build-failed',
    time,
    diskimage: 'test',
    'image-id': 'test',
    error: `this is a test by ${thisUser()}, and nothing has failed`,
  });
  const reply = await deliver(entry, event, signal).catch((cause: unknown) => {
    signal.throwIfAborted();
    throw new CommandError(`${name} was not notified: ${errorLine(cause)}`, 'failed', { cause });
  });
  console.log(`notified ${name}: ${reply}`);
}
