// Not a unit test: it starts systemd-notify.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { openNotifySocket } from '../../../../test/fixtures/notify-socket.ts';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { Systemd } from '../../src/commands/systemd.ts';

it('systemd’s watchdog is notified twice per interval, with the service’s status while it runs', async (t) => {
  const { path, next } = await openNotifySocket(t);
  const environment = {
    NOTIFY_SOCKET: path,
    WATCHDOG_USEC: '200000',
    WATCHDOG_PID: `${process.pid}`,
    HOME: '/',
  };
  const systemd = new Systemd(environment, new RecordingLogger());
  assert.deepEqual(environment, { HOME: '/' }, 'children inherit nothing of it');
  assert.deepEqual(await next(), { WATCHDOG: '1' });
  systemd.ready(() => '2 images');
  // Earlier messages of the watchdog may still arrive.
  let message = await next();
  while (message.READY === undefined) {
    assert.deepEqual(message, { WATCHDOG: '1' });
    message = await next();
  }
  assert.deepEqual(message, { READY: '1', STATUS: '2 images' });
  assert.deepEqual(await next(), { WATCHDOG: '1', STATUS: '2 images' });
  await systemd.close();
});

it('messages to systemd are sent in order', async (t) => {
  const { path, next } = await openNotifySocket(t);
  const systemd = new Systemd({ NOTIFY_SOCKET: path }, new RecordingLogger());
  systemd.ready(() => 'one');
  systemd.reloading();
  systemd.ready(() => 'two');
  systemd.stopping('stopping');
  await systemd.close();
  const messages = [await next(), await next(), await next(), await next()];
  assert.deepEqual(
    messages.map((message) => message.STATUS),
    ['one', 'Reading the configuration', 'two', 'stopping'],
  );
});

it('a systemd socket that is gone is logged once, and the service continues', async () => {
  const logger = new RecordingLogger();
  const systemd = new Systemd({ NOTIFY_SOCKET: '/nowhere/notify' }, logger);
  systemd.ready(() => 'one');
  systemd.stopping('stopping');
  await systemd.close();
  assert.equal(logger.lines.length, 1);
  assert.match(logger.lines[0] ?? '', /^warn cannot notify systemd: /);
});

it('a service without systemd sends nothing', async () => {
  const logger = new RecordingLogger();
  const systemd = new Systemd({ WATCHDOG_USEC: '1000' }, logger);
  systemd.ready(() => 'one');
  await systemd.close();
  assert.deepEqual(logger.lines, []);
});
