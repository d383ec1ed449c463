import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, readFile, stat, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { startBuilder } from '../fixtures/builder-process.ts';
import { runInProcess } from '../fixtures/command-in-process.ts';
import { runCommand } from '../fixtures/command-outcome.ts';
import { errorOf, idOf, startService } from '../fixtures/managed-service.ts';
import {
  createManagedSite,
  docsImage,
  endAfter,
  type ManagedSite,
  provider,
} from '../fixtures/managed-site.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

/** Pattern for an age of seconds or minutes. */
const AGE = String.raw`\d+ (?:s|min)(?: \d+ s)?`;

describe('the lists', () => {
  let site: ManagedSite;
  let imageId: string;
  let uploadId: string;
  let ended: () => Promise<void>;

  before(async () => {
    const closers: (() => unknown)[] = [];
    ended = async () => {
      for (const close of closers.toReversed()) await close();
    };
    const context = { after: (close: () => unknown) => void closers.push(close) } as TestContext;
    ({ site } = await startService(context));
    imageId = await idOf(site, 'dib-image-list', 'image-id', '0000000001');
    uploadId = await idOf(site, 'image-list', 'upload-id', '0000000002');
  });
  after(() => ended());

  const table = async (...args: readonly string[]): Promise<string[]> => {
    const outcome = await runCommand(...args, '-c', site.config);
    assert.deepEqual([outcome.code, outcome.stderr], [0, '']);
    return outcome.stdout.trimEnd().split('\n');
  };

  it('the command image-status shows where a disk image is', async () => {
    const [header, ...rows] = await table('image-status');
    assert.match(header ?? '', /^DISKIMAGE +PROVIDER +STATE +READY +NEWEST +AGE +ERROR$/);
    assert.equal(rows.length, 2);
    assert.match(rows[0] ?? '', new RegExp(`^docs +builders +ready +1 +${imageId} +${AGE} +-$`));
    assert.match(rows[1] ?? '', new RegExp(`^docs +east +ready +1 +${imageId} +${AGE} +-$`));
    assert.partialDeepStrictEqual(await site.list('image-status'), [
      { diskimage: 'docs', provider: null, 'image-name': null, state: 'ready', ready: 1, newest: imageId },
      {
        diskimage: 'docs',
        provider: 'east',
        'image-name': 'docs',
        state: 'ready',
        ready: 1,
        newest: imageId,
      },
    ]);
  });

  it('the command dib-image-list shows builds with the reasons for their requests', async () => {
    const [header, ...rows] = await table('dib-image-list');
    assert.match(header ?? '', /^IMAGE-ID +STATE +AGE +REASON$/);
    assert.equal(rows.length, 1);
    assert.match(rows[0] ?? '', new RegExp(`^${imageId} +ready +${AGE} +its first ready build$`));
    const [build] = await site.list('dib-image-list');
    assert.partialDeepStrictEqual(build, {
      'image-id': imageId,
      state: 'ready',
      withdrawn: false,
      reason: 'its first ready build',
      error: null,
    });
  });

  it('the command image-list shows uploads', async () => {
    const [header, ...rows] = await table('image-list');
    assert.match(header ?? '', /^IMAGE-ID +UPLOAD-ID +PROVIDER +STATE +AGE +EXTERNAL-ID +ERROR$/);
    assert.equal(rows.length, 1);
    const external = `docs-${imageId}.qcow2`;
    assert.match(
      rows[0] ?? '',
      new RegExp(`^${imageId} +${uploadId} +east +ready +${AGE} +docs-…\\.qcow2 +-$`),
    );
    assert.partialDeepStrictEqual(await site.list('image-list'), [
      {
        'image-id': imageId,
        'upload-id': uploadId,
        provider: 'east',
        'external-id': external,
        state: 'ready',
      },
    ]);
  });

  it('the command image-list --offered shows what builders offer', async () => {
    const [image, ...others] = await site.list('image-list', '--offered');
    assert.deepEqual(others, []);
    assert.partialDeepStrictEqual(image, { 'image-id': imageId, 'image-name': 'docs', builders: 1 });
  });

  it('the command plan shows when the next build is due', async () => {
    const [build, ...others] = await site.list('plan');
    assert.deepEqual(others, []);
    const [{ requested } = { requested: '' }] = await site.list('dib-image-list');
    assert.partialDeepStrictEqual(build, {
      what: 'build',
      subject: 'docs',
      when: new Date(Date.parse(requested) + 86_400_000).toISOString(),
    });
    assert.equal(build?.reason, `${imageId} reaches rebuild-age, 24 hours`);
  });

  it('the command alien-image-list separates orphans from other owners’ images, and --dry-run lists the orphans', async () => {
    const uploaded = join(site.directory, 'east', `docs-${imageId}.qcow2`);
    const manifest = JSON.parse(await readFile(`${uploaded}.json`, 'utf8'));
    const owner = uploadId.split('-')[1];
    for (const [name, mark] of [
      ['leaked', `0000000099-${owner}`],
      ['alien', '0000000099-anotherx'],
    ]) {
      const copy = join(site.directory, 'east', `docs-${name}.qcow2`);
      await copyFile(uploaded, copy);
      await writeFile(`${copy}.json`, JSON.stringify({ ...manifest, 'image-id': name, 'upload-id': mark }));
    }
    await copyFile(uploaded, join(site.images, 'by-hand.qcow2'));
    const orphans = await waitUntil('the image that was copied by hand', async () => {
      const found = await site.list('alien-image-list');
      return found.length === 3 && found;
    });
    assert.deepEqual(
      orphans
        .map(({ provider: name, 'image-id': id, ours }) => [name ?? 'builder', id, ours].join(' '))
        .toSorted(),
      ['builder by-hand false', 'east alien false', 'east leaked true'],
    );
    const plan = await table('manage', '--dry-run');
    assert.match(
      plan.at(-1) ?? '',
      /^delete-orphan +docs-leaked\.qcow2 in east +seen twice +it is tagged as ours/,
    );
    assert.equal(plan.filter((line) => line.startsWith('delete-orphan')).length, 1);
    assert.equal((await site.uploaded('east')).length, 3);
  });

  it('the command rebuild lists the disk images if the name is wrong', async () => {
    assert.match(
      await errorOf('not-found', site, 'rebuild', 'dosc'),
      /disk image "dosc" is not in .*; choose one of: docs/,
    );
  });
});

describe('the lists of images with long names', () => {
  it('lists of images with long names fit 100 columns, with every id', async (t) => {
    const [name, cloud] = ['debian-bookworm-arm64', 'openstack-region-one'];
    const site = await createManagedSite(t, {
      diskimages: [docsImage({ name }), docsImage({ name: `${name}-broken`, options: { tree: '/none' } })],
      providers: [provider(cloud, { directory: 'east', images: [{ name: 'arm64', diskimage: name }] })],
    });
    const service = endAfter(t, await startBuilder(site.config, '--all-in-one'));
    await service.logged(/upload \d+-\w+ of debian-bookworm-arm64-\d+-\w+ to openstack-region-one is ready/);
    await service.logged(/build debian-bookworm-arm64-broken-\d+-\w+ .*failed/);
    for (const command of ['plan', 'image-status', 'dib-image-list', 'image-list', 'image-list --offered']) {
      const { stdout, stderr } = await runInProcess(...command.split(' '), '-c', site.config);
      assert.equal(stderr, '', 'no line is cut');
      for (const line of stdout.split('\n')) assert.ok(line.length <= 100, `${command}: ${line}`);
      const records = await site.list(...(command.split(' ') as [string, ...string[]]));
      for (const { 'image-id': id } of records) assert.ok(id === undefined || stdout.includes(id), command);
    }
  });
});

describe('plan', () => {
  it('the command plan names paused disk images and providers', async (t) => {
    const site = await createManagedSite(t, { diskimages: [docsImage({ pause: true })] });
    endAfter(t, await startBuilder(site.config, '--embedded-gearmand'));
    const plan = await site.list('plan');
    assert.deepEqual(
      plan.map(({ what, subject, when }) => [what, subject, when]),
      [['wait', 'diskimage docs', null]],
    );
    assert.match(
      plan[0]?.reason ?? '',
      /^it is paused by the configuration; a build is due: its first ready build$/,
    );
  });

  it('the command plan names the time of the next attempt after a failure', async (t) => {
    const site = await createManagedSite(t, {
      diskimages: [docsImage({ options: { tree: '/no/such/directory' } })],
    });
    const service = endAfter(t, await startBuilder(site.config, '--all-in-one'));
    const failure = /build docs-0000000001-\w+ .*failed: /;
    await service.logged(failure);
    const [wait, ...others] = await waitUntil('the record of the failure', async () => {
      const plan = await site.list('plan');
      return plan.length > 0 && plan;
    });
    assert.deepEqual(others, []);
    assert.match(
      wait?.reason ?? '',
      /^the last attempt failed \(.*no such file.* \(on .+\)\); the next follows later: its first ready build$/i,
    );
    const [build] = await site.list('dib-image-list');
    assert.equal(build?.state, 'failed');
    assert.match(String(build.error), RegExp(`no such file.*\\(on ${hostname()}\\)$`, 'i'));
    const [status] = await site.list('image-status');
    assert.partialDeepStrictEqual(status, { provider: null, state: 'failed', error: build.error });
    assert.equal(service.log.filter((line) => /failed.*no such file/i.test(line)).length, 1);
    assert.ok(Date.parse(wait?.when ?? '') > Date.parse(build.requested ?? '') + 60_000);
  });
});

describe('commands without a manager', () => {
  it('image-list works without a manager, and commands that need records fail with a remedy', async (t) => {
    const site = await createManagedSite(t);
    endAfter(t, await startBuilder(site.config, '--embedded-gearmand'));
    assert.deepEqual(await site.list('image-list'), []);
    const { code, ...printed } = await runInProcess('image-list', '-c', site.config);
    assert.deepEqual([code, printed], [0, { stdout: '', stderr: 'there is nothing to list\n' }]);
    const { stderr } = await runInProcess(
      'plan',
      '-c',
      (await createManagedSite(t, { diskimages: [], providers: [] })).config,
    );
    assert.match(stderr, /^nothing is due, and nothing waits$/m);
    for (const command of [['dib-image-list'], ['image-status'], ['alien-image-list'], ['rebuild', 'docs']]) {
      const fault = await errorOf('not-found', site, ...command);
      assert.match(
        fault,
        /no manager has run here: .*manager\.sqlite does not exist; start nodepool-builder manage/,
      );
    }
  });
});

describe('export-image-data and import-image-data', () => {
  it('export-image-data and import-image-data move the records to another store', async (t) => {
    const { site, process: service } = await startService(t);
    const file = join(site.directory, 'images.json');
    const written = await runInProcess('export-image-data', file, '-c', site.config);
    assert.deepEqual(written, { code: 0, stdout: '', stderr: `wrote 1 builds and 1 uploads to ${file}\n` });
    const records = [await site.list('dib-image-list'), await site.list('image-list')];

    assert.match(
      await errorOf('refused', site, 'import-image-data', file),
      /a manager is using this store; stop it first/,
    );
    assert.equal(await service.end('SIGTERM'), 0);
    assert.match(
      await errorOf('refused', site, 'import-image-data', file),
      /is not empty: .*; import into a new store/,
    );

    await site.configure({ providers: [provider('east')], manager: { store: 'state/other.sqlite' } });
    const read = await runInProcess('import-image-data', file, '-c', site.config);
    assert.deepEqual(read, { code: 0, stdout: '', stderr: `read 1 builds and 1 uploads from ${file}\n` });
    assert.deepEqual([await site.list('dib-image-list'), await site.list('image-list')], records);
  });

  it('import-image-data rejects an invalid file with a reason', async (t) => {
    const site = await createManagedSite(t);
    const file = join(site.directory, 'images.json');
    assert.match(
      await errorOf('not-found', site, 'import-image-data', file),
      /images\.json cannot be read: ENOENT.*; name a file that export-image-data wrote/,
    );
    await writeFile(file, '{"version": 1}');
    assert.match(
      await errorOf('failed', site, 'import-image-data', file),
      /invalid export: .*; nothing was imported/,
    );
    assert.match(
      await errorOf('failed', site, 'export-image-data', join(site.directory, 'none/x')),
      /ENOENT.*name another file/,
    );
    assert.ok((await stat(file)).isFile());
  });
});

describe('--help', () => {
  it('the help for each command shows an example', async () => {
    const commands = [
      'serve',
      'image-build',
      'image-upload',
      'image-delete',
      'image-list',
      'manage',
      'plan',
      'dib-image-list',
      'image-status',
      'alien-image-list',
      'rebuild',
      'image-pause',
      'image-unpause',
      'rollback',
      'dib-image-delete',
      'upload-delete',
      'export-image-data',
      'import-image-data',
      'build',
      'convert',
      'upload',
      'latest',
      'prune',
      'reap',
    ];
    // One process for all commands, because starting each would take most of the time.
    const program = `
      import { main } from 'nodepool-builder';
      for (const command of process.argv.slice(1)) process.exitCode ||= await main([command, '--help']);`;
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [...process.execArgv, '--input-type=module', '--eval', program, ...commands],
      { cwd: import.meta.dirname },
    );
    for (const command of commands) {
      assert.match(stdout, new RegExp(`Examples?:\n  \\$ nodepool-builder ${command} `));
    }
  });
});
