import { deliver } from '../daemon/notifications/delivery.ts';
import { makeEvent } from '../daemon/notifications/event.ts';
import { thisUser } from '../site/control-jobs.ts';
import { CommandError, errorLine, findByName } from '../terms/command-error.ts';
import { configured } from './configured-command.ts';
import { untilStopSignal } from './stop-signal.ts';

/** `notify-test`: sends a sample event to a receiver. */
export const register = configured({
  name: 'notify-test',
  description:
    'Sends the sample event of a failed build to a receiver of notifications, once, and prints its response. The id ' +
    'of the event begins with "test/".',
  argument: ['<name>', 'entry of notifications'],
  example: 'chat',
  run: (site, _, name) =>
    untilStopSignal(async (signal) => {
      const { notifications, file } = await site.configuration();
      const entry = findByName(notifications, 'notification', name, file);
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
    }),
});
