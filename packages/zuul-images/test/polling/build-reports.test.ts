import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { type MosquittoOptions, startMosquitto } from '../../../../test/fixtures/mosquitto.ts';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { selfSigned } from '../../../../test/fixtures/self-signed.ts';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import { BuildReports } from '../../src/polling/build-reports.ts';
import type { MqttSettings } from '../../src/zuul-settings.ts';
import { OldBroker } from './old-broker.ts';

const TOPIC = 'zuul/example/periodic';

/** Size in bytes, above the limit of a report. */
const TOO_MUCH = 1024 * 1024 + 1;

function report(job: string, result: string): string {
  return JSON.stringify({ buildset: { builds: [{ job_name: job, result }] } });
}

/** Subscribers, with the jobs of those that were woken, in order. */
class Listeners {
  readonly woken: string[] = [];
  readonly logger = new RecordingLogger();
  readonly #reports = new BuildReports(this.logger);

  listen(t: TestContext, settings: MqttSettings, job: string): () => Promise<void> {
    const wake = (): unknown => this.woken.push(job);
    const unsubscribe = this.#reports.subscribe(settings, { job, wake });
    undoAfter(t, unsubscribe);
    return unsubscribe;
  }

  async wokenTimes(count: number): Promise<void> {
    await waitUntil(`${count} to be woken`, () => this.woken.length >= count);
  }

  lines(level: string): readonly string[] {
    return this.logger.lines.filter((line) => line.startsWith(level));
  }
}

async function startBroker(t: TestContext, options: MosquittoOptions = {}) {
  const broker = await startMosquitto(options);
  undoAfter(t, () => broker.stop());
  return broker;
}

describe('reports of builds over MQTT', () => {
  test('an MQTT report wakes a job’s subscribers when one of its builds has finished, with any success-message', async (t) => {
    const broker = await startBroker(t);
    const settings = { url: `mqtt://127.0.0.1:${broker.port}`, topic: 'zuul/+/periodic' };
    const listeners = new Listeners();
    listeners.listen(t, settings, 'noble');
    const jammy = listeners.listen(t, settings, 'jammy');
    await listeners.wokenTimes(2);
    assert.deepEqual(listeners.woken, ['noble', 'jammy']);

    await broker.publish(TOPIC, 'noble was built');
    await broker.publish(TOPIC, `${report('noble', 'SUCCESS')}${' '.repeat(TOO_MUCH)}`);
    await broker.publish('zuul/example/check', report('noble', 'SUCCESS'));
    await broker.publish(TOPIC, report('jammy', 'the image is there'));
    await listeners.wokenTimes(3);
    assert.equal(listeners.woken[2], 'jammy');
    assert.match(
      listeners.lines('debug').join('\n'),
      /^debug ignored an MQTT message that is not a report of Zuul: [^\n]*$/,
    );

    await jammy();
    await broker.publish(TOPIC, report('jammy', 'SUCCESS'));
    await broker.publish(TOPIC, report('noble', 'SUCCESS'));
    await listeners.wokenTimes(4);
    assert.equal(listeners.woken[3], 'noble');
    assert.deepEqual(listeners.lines('warn'), []);
  });

  test('MQTT reports continue after an outage of the broker, with one warning', async (t) => {
    const broker = await startBroker(t);
    const listeners = new Listeners();
    listeners.listen(t, { url: `mqtt://localhost:${broker.port}`, topic: TOPIC }, 'noble');
    await listeners.wokenTimes(1);
    await broker.kill();
    await waitUntil('two attempts', () => listeners.lines('debug').length > 0);
    await broker.restart();
    await listeners.wokenTimes(2);
    await broker.publish(TOPIC, report('noble', 'SUCCESS'));
    await listeners.wokenTimes(3);
    const name = `MQTT broker localhost:${broker.port}`;
    assert.deepEqual(listeners.lines('warn'), [
      `warn ${name}: the connection was closed; until it can be used, builds are found only by polling`,
    ]);
    assert.deepEqual(listeners.lines('info'), [`info ${name}: connected`]);
  });

  test('MQTT reports arrive over TLS, with a password that can be changed', async (t) => {
    const directory = temporaryDirectory(t);
    const [passwordFile, caFile] = [join(directory, 'password'), join(directory, 'ca.pem')];
    const certificate = await selfSigned();
    await writeFile(caFile, certificate.cert);
    await writeFile(passwordFile, 'an old secret\n');
    const user = { name: 'nodepool', password: 'a secret' };
    const { port } = await startBroker(t, { tls: certificate, user });
    const listeners = new Listeners();
    const settings = { url: `mqtts://${user.name}@127.0.0.1:${port}`, topic: TOPIC };
    listeners.listen(t, { ...settings, 'password-file': passwordFile, 'ca-file': caFile }, 'noble');
    const [refusal = ''] = await waitUntil('a refusal', () => {
      const lines = listeners.lines('warn');
      return lines.length > 0 && lines;
    });
    assert.match(refusal, /Connection refused: Not authorized; until/);
    await writeFile(passwordFile, `${user.password}\n`);
    await listeners.wokenTimes(1);
    assert.doesNotMatch(listeners.logger.lines.join('\n'), /secret/);
  });

  test('MQTT reports are not accepted from a broker without a trusted certificate', async (t) => {
    const { port } = await startBroker(t, { tls: await selfSigned() });
    const listeners = new Listeners();
    listeners.listen(t, { url: `mqtts://127.0.0.1:${port}`, topic: TOPIC }, 'noble');
    await waitUntil('a second attempt', () => listeners.lines('debug').length > 0);
    assert.match(listeners.lines('warn').join('\n'), /^[^\n]*: self-signed certificate;[^\n]*$/);
    assert.deepEqual(listeners.woken, []);
  });

  test('MQTT reports also arrive by MQTT 3.1.1, over one connection for all subscribers', async (t) => {
    const broker = await OldBroker.start();
    undoAfter(t, () => broker[Symbol.asyncDispose]());
    const listeners = new Listeners();
    const settings = { url: broker.url, topic: TOPIC };
    for (const job of ['noble', 'jammy']) listeners.listen(t, { ...settings }, job);
    await listeners.wokenTimes(2);
    assert.deepEqual(broker.versions, [5, 4]);
    broker.publish(TOPIC, Buffer.from(`${report('jammy', 'SUCCESS')}${' '.repeat(TOO_MUCH)}`));
    broker.publish(TOPIC, Buffer.from(report('noble', 'SUCCESS')));
    await listeners.wokenTimes(3);
    assert.equal(listeners.woken[2], 'noble');
    assert.match(listeners.lines('debug').join('\n'), /not a report of Zuul: its 10\d{5} bytes are too many/);
  });
});
