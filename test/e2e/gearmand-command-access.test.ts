import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Admin, Client, type ServerAddress, Worker } from '@nodepool-builder/gearman-node';
import {
  type GearmandCommand,
  refusedGearmand,
  startGearmandCommand,
  temporaryDirectory,
} from '../fixtures/gearmand-command.ts';
import { selfSigned } from '../fixtures/self-signed.ts';
import { undoAfter } from '../fixtures/undo-after.ts';

/** The command with an access list, and the addresses of a client and a worker, each with a certificate. */
interface Site extends GearmandCommand {
  readonly zuul: ServerAddress;
  readonly builder: ServerAddress;
  readonly install: (list: string) => Promise<void>;
}

/** TLS options, and peers whose certificates they accept. */
async function certificates(t: TestContext) {
  const directory = await temporaryDirectory(t);
  const file = (name: string): string => join(directory, name);
  const names = ['server', 'zuul.example.org', 'builder'];
  const [server, zuul, builder] = (await Promise.all(names.map(selfSigned))) as [Pair, Pair, Pair];
  await writeFile(file('cert'), server.cert);
  await writeFile(file('key'), server.key);
  await writeFile(file('ca'), zuul.cert + builder.cert);
  const options = ['--tls-cert', file('cert'), '--tls-key', file('key'), '--tls-ca', file('ca')];
  const tls = { zuul: { ...zuul, ca: server.cert }, builder: { ...builder, ca: server.cert } };
  return { options, tls, list: file('access.yaml') };
}

type Pair = Awaited<ReturnType<typeof selfSigned>>;

async function start(t: TestContext, access: string): Promise<Site> {
  const { options, tls, list } = await certificates(t);
  const install = (text: string): Promise<void> => writeFile(list, text);
  await install(access);
  const command = await startGearmandCommand(t, ...options, '--access-list', list);
  const zuul = { ...command.address, tls: tls.zuul };
  return { ...command, zuul, builder: { ...command.address, tls: tls.builder }, install };
}

const RULES = `
zuul.example.org: { submit: ["image-build:"] }
builder: { register: [""] }
`;

test('a client certificate may submit what its prefix allows, and nothing else', async (t) => {
  const { zuul, builder, logged } = await start(t, RULES);
  const worker = new Worker({ servers: [builder] });
  const client = new Client({ servers: [zuul] });
  const admin = new Admin(zuul);
  undoAfter(t, () => Promise.all([worker.close(), client.close(), admin.close()]));
  worker.setFunctions(
    Object.fromEntries(['image-build:x', 'image-delete:x'].map((name) => [name, () => name])),
  );

  assert.equal(String(await client.submit('image-build:x')), 'image-build:x');
  await assert.rejects(client.submit('image-delete:x').result, { serverCode: 'ACCESS_DENIED' });
  assert.match(await logged(), /as "zuul\.example\.org" may not submit "image-delete:x"/);
  await assert.rejects(admin.dropFunction('image-build:x'), { serverCode: 'ACCESS_DENIED' });
});

test('SIGHUP applies new access rules to open connections, and invalid rules are logged and not applied', async (t) => {
  const { child, zuul, install, logged } = await start(t, RULES);
  const client = new Client({ servers: [zuul] });
  undoAfter(t, () => client.close());
  const submit = async (name: string): Promise<string> =>
    await client.submit(name, '', { background: true }).handle;
  await submit('image-build:x');

  await install('zuul.example.org: { sumbit: [""] }');
  child.kill('SIGHUP');
  assert.match(
    await logged(),
    /access\.yaml:1:21: zuul\.example\.org has the unknown key "sumbit"; use one of submit/,
  );
  await submit('image-build:x');

  await install('zuul.example.org: { submit: ["image-delete:"] }');
  child.kill('SIGHUP');
  assert.match(await logged(), /reloaded the certificate and the access list/);
  await submit('image-delete:x');
  await assert.rejects(submit('image-build:x'), { serverCode: 'ACCESS_DENIED' });
});

test('an invalid access list is rejected with the line of the error', async (t) => {
  const { options, list } = await certificates(t);
  await writeFile(list, 'zuul:\n  submit: image-\n');
  const { code, stderr = '' } = await refusedGearmand(...options, '--access-list', list);
  assert.equal(code, 1);
  assert.ok(
    stderr.includes(`${list}:2:3: zuul.submit must be a list, but is a string; write a list`),
    stderr,
  );
});
