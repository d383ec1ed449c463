import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { Admin } from '@nodepool-builder/gearman-node';
import type { BuilderProcess } from '../fixtures/builder-process.ts';
import { type CompatSite, createCompatSite } from '../fixtures/compat-site.ts';
import { type Geard, startGeard } from '../fixtures/geard.ts';
import { IS_JOB_FUNCTION } from '../fixtures/gearman-commands.ts';
import { type Gearmand, startGearmand } from '../fixtures/gearmand.ts';
import { NodepoolClient, uploadArgument } from '../fixtures/nodepool-client.ts';
import { setUp } from '../fixtures/set-up.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

/** Disk images that fail in different ways. */
const FAULTY_DISKIMAGES = `
  - {name: fails, elements: [fail]}
  - {name: makes-nothing, elements: [nothing]}
  - {name: no-program, dib-cmd: /does/not/exist}
  - {name: number-in-env-vars, env-vars: {DIB_X: 5}}
  - {name: unbalanced-quote, elements: 'vm "base'}`;

const BUILD_FUNCTIONS = [
  'debian',
  'fails',
  'makes-nothing',
  'no-program',
  'number-in-env-vars',
  'unbalanced-quote',
].map((name) => `image-build:${name}`);

/** A cloud that is not configured, and one that is down. */
const FAULTY_PROVIDERS = `
  - {name: no-such-cloud, cloud: no-such-cloud, image-type: raw, max-servers: 1, images: [{name: trusty, min-ram: 1}]}
  - name: away
    auth-url: http://127.0.0.1:1/v3
    username: nodepool
    password: secret-of-the-cloud
    project-name: nodepool
    image-type: raw
    image-upload-timeout: 1
    max-servers: 1
    images: [{name: trusty, min-ram: 1}]
  - {name: bad-template, type: directory, directory: pool, image-type: raw, template-hostname: '{nobody}', images: [{name: trusty}]}`;

type Case = readonly [what: string, functionName: string, argument: string, reason: RegExp];

/** Jobs of section 1.5 that end with WORK_FAIL. */
const FAILS: readonly Case[] = [
  ['disk-image-create exits non-zero', 'image-build:fails', '{"image-id": "1"}', /exit code 3/],
  ['the build command cannot be executed', 'image-build:no-program', '{"image-id": "1"}', /is not installed/],
  ['an expected file was not made', 'image-build:makes-nothing', '{"image-id": "1"}', /was not made/],
  [
    'an upload has no file that the provider takes',
    'image-upload:tarred',
    uploadArgument('pool', 'trusty'),
    /cannot be converted/,
  ],
  [
    'an upload’s image-name is unknown',
    'image-upload:there',
    uploadArgument('pool', 'debian'),
    /has no image "debian"/,
  ],
];

/** Jobs of section 1.5 that end with WORK_EXCEPTION. */
const EXCEPTIONS: readonly Case[] = [
  ['image-id contains a slash', 'image-build:debian', '{"image-id": "a/b"}', /contains a "\/"/],
  ['image-id is empty', 'image-build:debian', '{"image-id": ""}', /image-id "" is empty/],
  ['image-id is missing', 'image-build:debian', '{}', /image-id is missing/],
  ['image-id is an integer', 'image-build:debian', '{"image-id": 1}', /image-id is not a string/],
  ['image-id is null', 'image-build:debian', '{"image-id": null}', /image-id is not a string/],
  ['the arguments are not JSON', 'image-build:debian', 'image-id', /not JSON/],
  ['the key is image_id', 'image-build:debian', '{"image_id": "1"}', /image-id is missing/],
  ['an env-vars value is not a string', 'image-build:number-in-env-vars', '{"image-id": "1"}', /DIB_X/],
  ['an element has an unbalanced quote', 'image-build:unbalanced-quote', '{"image-id": "1"}', /quote/],
  [
    'an upload’s provider is unknown',
    'image-upload:there',
    uploadArgument('other', 'trusty'),
    /"other" is not configured/,
  ],
  ['an upload’s argument lacks a key', 'image-upload:there', '{"provider": "pool"}', /image-name is missing/],
  ['an upload’s argument is invalid JSON', 'image-upload:there', '{"provider"', /not JSON/],
  [
    'an upload’s cloud is not configured',
    'image-upload:there',
    uploadArgument('no-such-cloud', 'trusty'),
    /no-such-cloud/,
  ],
  [
    'an upload’s cloud cannot be reached',
    'image-upload:there',
    uploadArgument('away', 'trusty'),
    /image-upload-timeout/,
  ],
  [
    'template-hostname has an unknown field',
    'image-upload:there',
    uploadArgument('bad-template', 'trusty'),
    /\{nobody\}/,
  ],
];

const SERVERS: Readonly<Record<string, () => Promise<Geard | Gearmand>>> = {
  gearmand: startGearmand,
  "a job server like python's geard": startGeard,
};

for (const [serverName, startServer] of Object.entries(SERVERS)) {
  describe(`jobs over ${serverName}`, () => {
    let server: Geard | Gearmand;
    let site: CompatSite;
    let builder: BuilderProcess;
    let client: NodepoolClient;
    let admin: Admin;

    setUp(async (undo) => {
      server = await startServer();
      undo(() => server.stop());
      site = await createCompatSite(server.port, {
        diskimages: FAULTY_DISKIMAGES,
        providers: FAULTY_PROVIDERS,
      });
      undo(() => site.remove());
      await layOut(site.images);
      builder = await site.start();
      undo(async () => assert.equal(await builder.end('SIGINT'), 0));
      client = await NodepoolClient.connect(server.port);
      undo(() => client.close());
      admin = new Admin({ host: '127.0.0.1', port: server.port });
      undo(() => admin.close());
      await offered(...BUILD_FUNCTIONS, 'image-upload:there', 'image-upload:tarred', 'image-delete:there');
      // Each worker connects on its own.
      await waitUntil('three workers', async () => (await workers()).length === 3);
    });

    async function workers(): Promise<Awaited<ReturnType<Admin['workers']>>> {
      return (await admin.workers()).filter(({ clientId }) => clientId.startsWith('Nodepool'));
    }

    async function functions(): Promise<string[]> {
      const status = await admin.status();
      return status
        .filter(({ name, availableWorkers }) => IS_JOB_FUNCTION.test(name) && availableWorkers > 0)
        .map(({ name }) => name);
    }

    async function offered(...names: readonly string[]): Promise<void> {
      await waitUntil(names.join(', '), async () => {
        const there = await functions();
        return names.every((name) => there.includes(name));
      });
    }

    it('build workers register only image-build, and upload workers the other functions (COMPAT 1.3)', async () => {
      const held = Object.fromEntries(
        (await workers()).map(({ clientId, functions: names }) => [
          clientId,
          new Set(names.filter((name) => IS_JOB_FUNCTION.test(name)).map((name) => name.split(':', 1)[0])),
        ]),
      );
      assert.deepEqual(held, {
        'Nodepool Builder Build Worker 1': new Set(['image-build']),
        'Nodepool Builder Upload Worker 1': new Set(['image-delete', 'image-upload']),
        'Nodepool Builder Control Worker 1': new Set(),
      });
    });

    it('the function image-build is registered for every disk image at the start (COMPAT 1.2)', async () => {
      const builds = (await functions()).filter((name) => name.startsWith('image-build:'));
      assert.deepEqual(builds.toSorted(), BUILD_FUNCTIONS);
    });

    it('build, upload and delete have nodepool’s arguments, results and registrations (COMPAT 1.4)', async () => {
      const build = await client.build('debian', '0000000007');
      assert.deepEqual([build.end, build.data], ['WORK_COMPLETE', '{"image-id": "0000000007"}']);
      await offered('image-upload:0000000007', 'image-delete:0000000007');

      const upload = await client.upload('0000000007', 'pool', 'trusty');
      assert.deepEqual(
        [upload.end, upload.data],
        ['WORK_COMPLETE', '{"external-id": "trusty-0000000007.raw"}'],
      );
      assert.equal(await readFile(join(site.pool, 'trusty-0000000007.raw'), 'utf8'), 'an image as raw\n');

      const deletion = await client.delete('0000000007');
      assert.deepEqual([deletion.end, deletion.data], ['WORK_COMPLETE', '']);
      const left = (await readdir(site.images)).filter((name) => name.startsWith('0000000007'));
      assert.deepEqual(left, [], 'COMPAT 1.8: not even the manifest directory is left');
      await waitUntil('no functions', async () => !String(await functions()).includes('0000000007'));

      const packets = [...build.packets, ...upload.packets];
      assert.deepEqual(
        new Set(packets),
        new Set(['WORK_STATUS', 'WORK_COMPLETE']),
        'COMPAT 1.6: the daemon takes the first data for the result, so none comes before it',
      );
    });

    it('unknown keys in a job’s argument are ignored (COMPAT 1.4)', async () => {
      const argument = '{"image-id": "0000000008", "image-name": "debian", "more": [1]}';
      const build = await client.submit('image-build:debian', argument).outcome;
      assert.equal(build.end, 'WORK_COMPLETE');
      assert.equal((await client.delete('0000000008')).end, 'WORK_COMPLETE');
    });

    it('the argument of image-delete is ignored (COMPAT 1.4)', async () => {
      await client.build('debian', '0000000009');
      const { outcome } = client.submit('image-delete:0000000009', 'no JSON\0at all');
      assert.equal((await outcome).end, 'WORK_COMPLETE');
    });

    for (const [what, functionName, argument, reason] of FAILS) {
      it(`a job ends with WORK_FAIL if ${what} (COMPAT 1.5)`, async () => {
        const { end, data } = await client.submit(functionName, argument).outcome;
        assert.deepEqual([end, data], ['WORK_FAIL', '']);
        await builder.logged(reason);
      });
    }

    for (const [what, functionName, argument, reason] of EXCEPTIONS) {
      it(`a job ends with WORK_EXCEPTION if ${what} (COMPAT 1.5)`, async () => {
        const { end, data } = await client.submit(functionName, argument).outcome;
        if (serverName === 'gearmand') {
          assert.equal(
            end,
            'WORK_FAIL',
            'gearmand makes that of it for a client that did not ask for exceptions',
          );
          await builder.logged(reason);
        } else {
          assert.equal(end, 'WORK_EXCEPTION');
          assert.match(data, reason);
          assert.doesNotMatch(data, /\n|secret-of-the-cloud/);
        }
      });
    }

    it('other files in images-dir do not disturb the builder (COMPAT 1.5, mended)', async () => {
      assert.equal((await client.upload('there', 'pool', 'trusty')).end, 'WORK_COMPLETE');
      const images = (await functions()).filter((name) => name.startsWith('image-upload:'));
      assert.deepEqual(images.toSorted(), ['image-upload:tarred', 'image-upload:there']);
    });

    it('a deletion of an unregistered image waits until it is registered (COMPAT 1.5)', async () => {
      await client.build('debian', '0000000010');
      await client.delete('0000000010');
      await waitUntil('no functions', async () => !String(await functions()).includes('0000000010'));
      const second = client.submit('image-delete:0000000010', '""');
      await second.created;
      const waiting = (await admin.status()).find(({ name }) => name === 'image-delete:0000000010');
      assert.deepEqual([waiting?.total, waiting?.running], [1, 0]);
      await client.build('debian', '0000000010');
      assert.equal((await second.outcome).end, 'WORK_COMPLETE');
    });

    it('deleting an image deletes all of its files and no others (COMPAT 1.8)', async () => {
      const suffixes = ['.raw', '.qcow2', '.d/dib-manifest', '.raw.md5', '.qcow2.sha256'];
      await mkdir(join(site.images, '11.d'));
      await Promise.all(suffixes.map((suffix) => writeFile(join(site.images, `11${suffix}`), 'x')));
      await writeFile(join(site.images, '111.raw'), 'x');
      await offered('image-delete:11', 'image-delete:111');
      assert.equal((await client.delete('11')).end, 'WORK_COMPLETE');
      const left = (await readdir(site.images)).filter((name) => name.startsWith('11'));
      assert.deepEqual(left, ['111.raw']);
      await rm(join(site.images, '111.raw'));
    });

    it('a function is registered once, and no connection is lost over deregistration (COMPAT 1.6)', async () => {
      const counts = (await admin.status()).map(({ availableWorkers }) => availableWorkers);
      assert.ok(
        counts.every((count) => count <= 1),
        String(counts),
      );
      assert.ok(!builder.log.some((line) => /was lost/.test(line)));
    });
  });
}

it('the builder sends the expected packets in the expected order over Python’s geard (COMPAT 1.6)', async (t) => {
  const server = await startGeard();
  undoAfter(t, () => server.stop());
  const site = await createCompatSite(server.port);
  undoAfter(t, () => site.remove());
  const builder = await site.start();
  undoAfter(t, () => builder.end('SIGINT'));
  const client = await NodepoolClient.connect(server.port);
  undoAfter(t, () => client.close());
  await client.build('debian', '1');
  await client.delete('1');
  const cantDo = 'Nodepool Builder Upload Worker 1: CANT_DO image-delete:1';
  await waitUntil('the function to disappear', () => server.received.includes(cantDo));

  const sent = server.received.filter((line) => line.startsWith('Nodepool'));
  const position = (pattern: RegExp): number => sent.findIndex((line) => pattern.test(line));
  assert.deepEqual(
    new Set(sent.map((line) => line.split(' ')[5])),
    new Set(KNOWN_TO_GEARD),
    'ECHO_REQ is sent, and not waited for; no other packet is that geard does not know',
  );
  for (const name of ['image-upload:1', 'image-delete:1']) {
    const canDo = position(new RegExp(`: CAN_DO ${name}$`));
    assert.ok(
      canDo >= 0 && canDo < position(/Build Worker 1: WORK_COMPLETE/),
      `${name} before the build's end`,
    );
    assert.equal(sent.filter((line) => line.endsWith(`: CAN_DO ${name}`)).length, 1, 'once');
  }
  assert.ok(
    position(/Upload Worker 1: WORK_COMPLETE/) < sent.indexOf(cantDo),
    'gearmand would requeue the job',
  );
});

const KNOWN_TO_GEARD = [
  'SET_CLIENT_ID',
  'CAN_DO',
  'CANT_DO',
  'GRAB_JOB_UNIQ',
  'PRE_SLEEP',
  'WORK_STATUS',
  'WORK_COMPLETE',
  'ECHO_REQ',
];

/** Writes an image, one that cannot be converted, and all files that broke the Python builder. */
async function layOut(images: string): Promise<void> {
  const files = [
    'there.raw',
    'tarred.tar',
    'no-dot',
    '.hidden',
    '5.vhd-intermediate',
    '6.qcow2-new',
    '7.raw.md5',
  ];
  await Promise.all(files.map((name) => writeFile(join(images, name), 'content')));
  await Promise.all(['lost+found', '8.d', 'directory.raw'].map((name) => mkdir(join(images, name))));
}
