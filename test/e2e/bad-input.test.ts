import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, afterEach, describe, it } from 'node:test';
import { Client, GearmanError } from '@nodepool-builder/gearman-node';
import { type BuilderProcess, spawnBuilder, startBuilder } from '../fixtures/builder-process.ts';
import { type Gearmand, startGearmand } from '../fixtures/gearmand.ts';
import { setUp } from '../fixtures/set-up.ts';
import { createSite, DOCS, type Site } from '../fixtures/site.ts';
import { undoAfter } from '../fixtures/undo-after.ts';

const isRoot = process.getuid?.() === 0;

let server: Gearmand;
let site: Site;
let builder: BuilderProcess;
let client: Client;

setUp(async (undo) => {
  server = await startGearmand();
  undo(() => server.stop());
  site = await createSite(server.port);
  undo(() => site.remove());
  const hanging = join(site.directory, 'hangs');
  await writeFile(hanging, '#!/bin/sh\nsleep 1000\n');
  await chmod(hanging, 0o755);
  await site.configure(`${DOCS}
  - {name: missing-command, dib-cmd: /does/not/exist}
  - {name: forbidden-command, dib-cmd: /etc/passwd}
  - {name: failing-command, dib-cmd: 'false'}
  - {name: idle-command, dib-cmd: 'true'}
  - {name: hanging-command, dib-cmd: ${hanging}, build-timeout: 1}
  - {name: number-in-env-vars, env-vars: {DIB_JOURNAL_SIZE: 4}}
  - {name: unbalanced-quote, elements: 'mini-os "base'}`);
  await writeFile(join(site.images, 'there.tar'), 'no disk, so it cannot be converted');
  builder = await startBuilder(site.config);
  undo(async () => assert.equal(await builder.end('SIGTERM'), 0));
  client = new Client({ servers: [{ host: '127.0.0.1', port: server.port }] });
  undo(() => client.close());
  undo(assertWorks);
});

/** Checks that the builder still works. */
async function assertWorks(): Promise<void> {
  await client.submit('image-build:docs', '{"image-id": "afterwards"}');
  await client.submit('image-delete:afterwards');
}

/** Checks that a failure left nothing behind. */
afterEach(async () => {
  assert.deepEqual((await readdir(site.images)).toSorted(), ['.nodepool-builder', 'there.tar']);
  assert.deepEqual(await readdir(join(site.images, '.nodepool-builder/staging')), []);
});

async function failureOf(functionName: string, argument: string): Promise<GearmanError> {
  try {
    await client.submit(functionName, argument);
  } catch (error) {
    assert.ok(error instanceof GearmanError, String(error));
    return error;
  }
  assert.fail(`${functionName} succeeded`);
}

describe('jobs with an invalid argument', () => {
  after(assertWorks);
  const cases: readonly (readonly [functionName: string, argument: string, reason: RegExp])[] = [
    ['image-build:docs', '', /is invalid: it is not JSON; send \{"image-id": "<id>"\}/],
    ['image-build:docs', '{"image-id": ', /is not JSON/],
    ['image-build:docs', '{}', /image-id is missing/],
    ['image-build:docs', '{"image_id": "1"}', /image-id is missing/],
    ['image-build:docs', '{"image-id": 1}', /image-id is not a string/],
    ['image-build:docs', '{"image-id": null}', /image-id is not a string/],
    ['image-build:docs', '{"image-id": "../../etc/passwd"}', /contains a "\/"/],
    ['image-build:docs', '{"image-id": "..secret"}', /contains ".."/],
    ['image-build:docs', '{"image-id": "a\\u0000b"}', /contains white space or a control character/],
    ['image-build:docs', '{"image-id": " "}', /contains white space/],
    ['image-build:docs', '{"image-id": ""}', /is empty/],
    ['image-build:docs', '{"image-id": "-rf"}', /begins with a "-", as an option does/],
    ['image-build:docs', JSON.stringify({ 'image-id': 'x'.repeat(250) }), /is longer than 2\d\d bytes/],
    ['image-build:number-in-env-vars', '{"image-id": "1"}', /DIB_JOURNAL_SIZE/],
    ['image-build:unbalanced-quote', '{"image-id": "1"}', /quot/],
    ['image-upload:there', 'nonsense', /is not JSON/],
    ['image-upload:there', '{"provider": "pool"}', /image-name is missing/],
    [
      'image-upload:there',
      '{"provider": "other", "image-name": "docs"}',
      /provider "other" is not configured here/,
    ],
  ];
  for (const [functionName, argument, reason] of cases) {
    it(`the job ${functionName} with ${argument.slice(0, 60) || 'nothing'} ends with WORK_EXCEPTION and a reason of one line`, async () => {
      const error = await failureOf(functionName, argument);
      assert.equal(error.code, 'job-exception');
      assert.match(error.message, reason);
      assert.doesNotMatch(error.message, /\n/);
    });
  }
});

describe('jobs that cannot be done', () => {
  after(assertWorks);
  const cases: readonly (readonly [functionName: string, argument: string, reason: RegExp])[] = [
    ['image-build:missing-command', '{"image-id": "1"}', /"\/does\/not\/exist" is not installed.*install it/],
    [
      'image-build:forbidden-command',
      '{"image-id": "1"}',
      /"\/etc\/passwd" is not executable.*execute permission/,
    ],
    ['image-build:failing-command', '{"image-id": "1"}', /false.*exit code 1/],
    ['image-build:idle-command', '{"image-id": "1"}', /failed: .*qcow2/],
    ['image-build:hanging-command', '{"image-id": "1"}', /took longer than 1 s.*build-timeout/],
    [
      'image-upload:there',
      '{"provider": "pool", "image-name": "other"}',
      /provider "pool" has no image "other"/,
    ],
    [
      'image-upload:there',
      '{"provider": "pool", "image-name": "docs"}',
      /tar, which cannot be converted to qcow2/,
    ],
  ];
  for (const [functionName, argument, reason] of cases) {
    it(`the job ${functionName} with ${argument} ends with WORK_FAIL, and the log has the reason`, async () => {
      const error = await failureOf(functionName, argument);
      assert.equal(error.code, 'job-failed');
      await builder.logged(reason);
    });
  }
});

it('a malformed packet closes only its own connection', async () => {
  const socket = connect(server.port, '127.0.0.1');
  // `once` would reject if the server resets the connection.
  const closed = new Promise<void>((resolve) => socket.on('error', () => {}).once('close', () => resolve()));
  socket.write('\0REQ\0\0\xff\xff\xff\xff\xff\xff');
  socket.end('GET / HTTP/1.1\r\n\r\n');
  socket.resume();
  await closed;
});

describe('an unusable images-dir', { skip: isRoot ? false : 'only root may mount' }, () => {
  /** A site whose images-dir is a separate file system. */
  async function mountedSite(options: string): Promise<Site> {
    const other = await createSite(server.port);
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', other.images]);
    const remove = async (): Promise<void> => {
      execFileSync('umount', [other.images]);
      await other.remove();
    };
    return { ...other, remove };
  }

  it('a read-only images-dir prevents the start, with a reason', async (t) => {
    const other = await mountedSite('ro');
    undoAfter(t, () => other.remove());
    const refused = spawnBuilder(other.config);
    await refused.logged(/images.*EROFS.*read and write access there/);
    assert.equal(await refused.ended, 1);
  });

  it('an images-dir that another process owns prevents the start, with a reason', async () => {
    const refused = spawnBuilder(site.config);
    await refused.logged(new RegExp(`${builder.child.pid}`));
    assert.equal(await refused.ended, 4);
  });

  it('a full images-dir fails the build, and the builder continues', async (t) => {
    const other = await mountedSite('size=1m');
    const tree = join(other.directory, 'tree');
    await mkdir(tree);
    await writeFile(join(tree, 'large'), randomBytes(2 ** 21));
    await other.configure(`
  - {name: large, builder: directory-tree, options: {tree: ${tree}}}`);
    const small = await startBuilder(other.config);
    undoAfter(t, async () => {
      await small.end('SIGTERM');
      await other.remove();
    });
    const error = await failureOf('image-build:large', '{"image-id": "1"}');
    assert.equal(error.code, 'job-failed');
    await small.logged(/failed: .*no space left/i);
    assert.deepEqual(await readdir(join(other.images, '.nodepool-builder/staging')), []);
    await writeFile(join(tree, 'large'), 'small now');
    await client.submit('image-build:large', '{"image-id": "2"}');
  });
});
