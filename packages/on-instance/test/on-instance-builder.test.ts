import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { readImages } from '@nodepool-builder/image-builder';
import { NO_SERVICES } from '../../../test/fixtures/builder-services.ts';
import { FakeAttester } from '../../../test/fixtures/fake-attester.ts';
import { holdTimeout } from '../../../test/fixtures/held-timeout.ts';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { withCode } from '../../../test/fixtures/with-code.ts';
import { imageBuilderContract } from '../../image-builder/src/testing/image-builder-contract.ts';
import { OnInstanceBuilder } from '../src/index.ts';
import { IMAGE_ID, OnInstanceSite, onInstanceOf } from './on-instance-site.ts';
import { SshdInstance, SshdInstances } from './sshd-instances.ts';

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

describe('an image built on an instance', () => {
  test('an image built on an instance has the steps’ results, but no identities, logins or logs of the build', async (t) => {
    const site = await OnInstanceSite.start(t);
    await mkdir(join(site.base, 'var/log'), { recursive: true });
    await writeFile(join(site.base, 'var/log/syslog'), 'said before');
    await writeFile(join(site.base, 'var/log/syslog.1.gz'), 'said long before');
    await mkdir(join(site.base, 'root'));
    await writeFile(join(site.base, 'root/.bash_history'), 'passwd');
    await mkdir(join(site.scripts, 'lib'));
    await writeFile(
      join(site.scripts, 'prepare_node.sh'),
      '#!/bin/sh\n. lib/text; echo "$text for $1" > /opt/mark\n',
    );
    await writeFile(join(site.scripts, 'lib/text'), 'text=prepared');
    const steps = [
      './prepare_node.sh custom',
      'env | grep -e NODEPOOL -e GREETING | sort > /opt/environment\necho hidden > ~/.ash_history',
    ];
    const builder = site.builder(
      { steps },
      { scriptDir: site.scripts, envVars: { GREETING: "it's <&> $HOME" }, secrets: ["it's <&> $HOME"] },
    );
    const image = await site.build(builder, {
      environment: { NODEPOOL_SSH_KEY: 'AAAA', OTHER: 'x' },
    });
    assert.equal(site.read(image, 'opt/mark'), 'prepared for custom\n');
    assert.equal(
      site.read(image, 'opt/environment'),
      "GREETING=it's <&> $HOME\nNODEPOOL_SCRIPTDIR=/opt/nodepool-scripts\nNODEPOOL_SSH_KEY=AAAA\n",
    );
    assert.equal(site.read(image, 'etc/machine-id'), '');
    assert.equal(site.read(image, 'var/log/syslog'), '');
    const names = site.names(image);
    for (const gone of [
      './var/log/syslog.1.gz',
      './root/.bash_history',
      './root/.ash_history',
      './root/.ssh/authorized_keys',
      './root/.nodepool-builder/',
    ]) {
      assert.ok(!names.includes(gone), gone);
    }
    assert.ok(names.includes('./opt/nodepool-scripts/prepare_node.sh'));
    assert.ok(names.includes('./etc/ssh/ssh_host_ed25519_key')); // nothing on the machine creates another
    assert.deepEqual(site.provider.instances, []);
    assert.equal(site.provider.instance.pushes, 0);
    assert.equal(site.provider.instance.request.userData, '#cloud-config\ndisable_root: false\n');
    assert.deepEqual(await site.recordFiles(), []);
    assert.equal(image.snapshots, undefined);
  });

  test('an image built on an instance has its base image, scripts and steps as materials', async (t) => {
    const site = await OnInstanceSite.start(t);
    await writeFile(join(site.scripts, 'prepare.sh'), 'true\n');
    const builder = site.builder({ steps: ['./prepare.sh', 'true'] }, { scriptDir: site.scripts });
    const attester = new FakeAttester();
    await site.build(builder, { attester });
    const script = join(site.scripts, 'prepare.sh');
    assert.deepEqual(attester.builds[0]?.materials, [
      { name: `base image ${site.base}`, digest: {}, annotations: { provider: 'sshds', image: site.base } },
      { name: `script ${script}`, digest: { sha256: sha256('true\n') }, annotations: { path: script } },
      { name: 'step 1', digest: { sha256: sha256('./prepare.sh') } },
      { name: 'step 2', digest: { sha256: sha256('true') } },
    ]);
  });

  test('a build on an instance lists the machine’s packages after the steps if a list is requested', async (t) => {
    const site = await OnInstanceSite.start(t);
    const install = String.raw`mkdir -p /usr/local/bin
printf '#!/bin/sh\nprintf "ii deb\\tcurl\\t8.0\\tamd64\\n"; echo a warning >&2\n' > /usr/local/bin/dpkg-query
chmod +x /usr/local/bin/dpkg-query`;
    const builder = site.builder({ steps: [install] });
    const attester = new FakeAttester([], true);
    const image = await site.build(builder, { attester });
    const lines = attester.packageList?.split('\n') ?? [];
    assert.ok(lines.includes('deb\tcurl\t8.0\tamd64'), attester.packageList);
    assert.ok(
      !site.lines.some((line) => line.includes('curl\t8.0')),
      'the log of the build is not full of packages',
    );
    assert.ok(!site.names(image).some((name) => name.includes('.nodepool-builder')));
  });

  test('a build on an instance succeeds without a package list if the package manager fails', async (t) => {
    const site = await OnInstanceSite.start(t);
    const install = String.raw`mkdir -p /usr/local/bin
printf '#!/bin/sh\necho damaged database; exit 2\n' > /usr/local/bin/dpkg-query
chmod +x /usr/local/bin/dpkg-query`;
    const attester = new FakeAttester([], true);
    await site.build(site.builder({ steps: [install] }), { attester });
    assert.equal(attester.packageList, undefined);
    assert.ok(site.lines.some((line) => /the image has no package list: .*exit code 2/.test(line)));
  });

  test('a build on an instance uses the base image that filters choose when it starts', async (t) => {
    const site = await OnInstanceSite.start(t);
    const choice = { 'image-filters': [{ name: 'name', values: ['debian-*'] }] };
    const chosen: unknown[] = [];
    const settings = { 'base-image': choice, steps: ['echo done > /opt/mark'] };
    const builder = site.builder(
      settings,
      {},
      {
        chooseImage: async (...args) => {
          chosen.push(args.slice(0, 2));
          return site.base;
        },
      },
    );
    const image = await site.build(builder);
    assert.equal(site.read(image, 'opt/mark'), 'done\n');
    assert.deepEqual(chosen, [['sshds', choice]]);
    assert.ok(
      site.lines.some((line) => line.includes(`launching an instance of ${site.base} in provider sshds`)),
    );
    assert.deepEqual(site.provider.instances, []);
  });

  test('a build on an instance works without SFTP, and with the base image’s key, which is kept', async (t) => {
    const site = await OnInstanceSite.start(t, { sftp: false });
    const { privateKey, publicKey } = await site.makeKey();
    await writeFile(join(site.scripts, "it's.sh"), 'echo done > /opt/mark\n');
    const image = await site.build(
      site.builder({ 'private-key': privateKey, steps: [`./"it's.sh"`] }, { scriptDir: site.scripts }),
    );
    assert.equal(site.read(image, 'opt/mark'), 'done\n');
    assert.match(site.read(image, 'root/.ssh/authorized_keys'), new RegExp(publicKey.replaceAll('+', '\\+')));
  });

  test('a build on an instance works as a user with sudo', async (t) => {
    const site = await OnInstanceSite.start(t);
    const steps = ['id -un > /tmp/$$; sudo -n mv /tmp/$$ /opt/who; touch ~/.bash_history'];
    const image = await site.build(site.builder({ username: 'builder', steps }));
    assert.equal(site.read(image, 'opt/who'), 'builder\n');
    assert.equal(site.read(image, 'etc/machine-id'), '');
    const left = site.names(image).filter((name) => name.startsWith('./home/builder/'));
    assert.deepEqual(left, ['./home/builder/', './home/builder/.ssh/']);
    assert.equal(site.provider.instance.pushes, 0);
    assert.equal(site.provider.instance.request.userData, undefined);
  });

  test('a build on an instance writes all requested formats', async (t) => {
    const site = await OnInstanceSite.start(t);
    const { files } = await site.build(site.builder({}, { formats: ['qcow2', 'raw'] }));
    assert.deepEqual(
      files.map(({ format }) => format),
      ['qcow2', 'raw'],
    );
  });
});

describe('a step', () => {
  test('a build step’s output is logged while it runs, without secrets', async (t) => {
    const site = await OnInstanceSite.start(t);
    // The title of the step ends within the secret.
    const run = `${'true; '.repeat(10)}echo begun with hunter22; echo and on stderr >&2; while [ ! -e /opt/go ]; do sleep 0.05; done; echo gone on`;
    const image = await site.build(site.builder({ steps: [run] }, { secrets: ['hunter22'] }), {
      onLine: (line) => {
        if (line === 'and on stderr') void writeFile(join(site.provider.instance.disk, 'opt/go'), '');
      },
    });
    assert.equal(image.id, IMAGE_ID);
    const log = await readFile(join(site.repository.repository.logDirectory, `${IMAGE_ID}.log`), 'utf8');
    const title = `== step "${'true; '.repeat(10)}echo begun with ***;…"`;
    for (const line of [title, 'begun with ***', 'and on stderr', 'gone on'])
      assert.ok(log.includes(`\n${line}\n`), line);
    assert.ok(!log.includes('hunt'));
  });

  test('a build step ends with its command, even if one of its processes keeps running', async (t) => {
    const site = await OnInstanceSite.start(t);
    const image = await site.build(site.builder({ steps: ['sleep 600 & echo $! > /opt/pid'] }));
    assert.match(site.read(image, 'opt/pid'), /^\d+\n$/);
  });

  test('a failed build step is reported with the end of its output and console, and a screenshot', async (t) => {
    const site = await OnInstanceSite.start(t, { console: 'booting\r\nout of hunter22\r\n' });
    const steps = ['# install\necho no such package; exit 3', 'touch /opt/reached'];
    const build = site.build(site.builder({ steps }, { secrets: ['hunter22'] }));
    await assert.rejects(build, (error: Error) => {
      assert.ok(withCode('command-failed')(error));
      const log = join(site.repository.repository.logDirectory, IMAGE_ID);
      const beginning = 'step "# install" ended with exit code 3, saying: no such package; ';
      assert.ok(error.message.startsWith(beginning), error.message);
      assert.ok(error.message.includes('; its console ended with: booting / out of ***; '), error.message);
      assert.ok(error.message.endsWith(`; its display is in ${log}.png; see ${log}.log`), error.message);
      return true;
    });
    assert.ok(site.lines.includes('console: out of ***'));
    assert.ok(existsSync(join(site.repository.repository.logDirectory, `${IMAGE_ID}.png`)));
    assert.ok(!existsSync(join(site.provider.instance.disk, 'opt/reached')));
    assert.deepEqual(site.provider.instances, []);
    assert.deepEqual(await site.recordFiles(), []);
  });

  test('a build step that a signal ends is reported', async (t) => {
    const site = await OnInstanceSite.start(t);
    const build = site.build(site.builder({ steps: ['echo dying; kill -TERM $$'] }));
    await assert.rejects(build, withCode('command-failed', /ended with SIGTERM, saying: dying; /));
  });

  test('a build step fails if the connection is lost', async (t) => {
    const site = await OnInstanceSite.start(t);
    const build = site.build(site.builder({ steps: ['echo begun; sleep 600'] }), {
      onLine: (line) => {
        if (line === 'begun') void site.provider.instance.sshd.kill();
      },
    });
    await assert.rejects(build, withCode('instance-failed', /the connection was lost while a command ran/));
    assert.deepEqual(site.provider.instances, []);
  });
});

describe('a machine that does not power off', () => {
  test('a machine that stays on after the power-off command is powered off by the power button', async (t) => {
    const site = await OnInstanceSite.start(t);
    await site.keepOn();
    const passStopTimeout = holdTimeout(t, 600);
    const build = site.build(site.builder({ 'stop-timeout': 600 }));
    const asked = waitUntil('the command to power off', () => site.wasAskedToPowerOff);
    await Promise.race([asked, build]);
    assert.equal(site.provider.instance.pushes, 0);
    passStopTimeout();
    const image = await build;
    assert.equal(site.provider.instance.pushes, 1);
    assert.equal(site.read(image, 'etc/machine-id'), '');
  });

  test('a machine that does not power off at all fails the build', async (t) => {
    const site = await OnInstanceSite.start(t, { ignoresButton: true });
    await site.keepOn();
    const build = site.build(site.builder({ 'stop-timeout': 1 }));
    await assert.rejects(build, withCode('instance-failed', /did not power off within 1 s/));
    assert.deepEqual(site.provider.instances, []);
  });
});

test('a machine without a login in time fails the build', async (t) => {
  const site = await OnInstanceSite.start(t, { isDead: true, console: 'kernel panic' });
  const build = site.build(site.builder({ 'boot-timeout': 0.5 }));
  const message =
    /cannot log in to instance \S+ within 0\.5 s: nothing responds there; its console ended with: kernel panic/;
  await assert.rejects(build, withCode('instance-failed', message));
  assert.deepEqual(site.provider.instances, []);
});

describe('a cancelled build', () => {
  for (const when of ['== step "sleep 600"', 'launching an instance of', 'logged in']) {
    test(`a build cancelled at "${when}" leaves no instance`, async (t) => {
      const site = await OnInstanceSite.start(t);
      const abort = new AbortController();
      const build = site.build(site.builder({ steps: ['sleep 600'], 'keep-on-failure': 600 }), {
        signal: abort.signal,
        onLine: (line) => {
          if (line.startsWith(when)) abort.abort();
        },
      });
      await assert.rejects(build, withCode('build-aborted'));
      await waitUntil('the instance to go', () => site.provider.instances.length === 0);
      await waitUntil('its record to go', async () => (await site.recordFiles()).length === 0);
    });
  }
});

describe('a failed build with keep-on-failure', () => {
  test('a failed build with keep-on-failure logs how to log in, and until when', async (t) => {
    const asked = (['state', 'address'] as const).map((name) => t.mock.method(SshdInstance.prototype, name));
    const site = await OnInstanceSite.start(t);
    const build = site.build(site.builder({ steps: ['touch /opt/mark; false'], 'keep-on-failure': 600 }));
    const error = await build.then(
      () => assert.fail('it did not fail'),
      (cause: unknown) => cause as Error,
    );
    const [, time = '', command = ''] = /kept until (\S+), log in with: (ssh .*?);/.exec(error.message) ?? [];
    assert.ok(Math.abs(Date.parse(time) - Date.now() - 600_000) < 60_000, time);
    assert.ok(site.lines.some((line) => line.includes(command)));
    const [program = '', ...args] = command.split(' ');
    const options = ['-o', 'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null'];
    assert.equal(
      execFileSync(program, [...options, ...args, 'ls /opt/mark'], { encoding: 'utf8' }),
      '/opt/mark\n',
    );
    for (const { mock } of asked) assert.ok(mock.calls.at(-1)?.arguments[0]?.signal, 'it may never answer');
  });

  test('a build with keep-on-failure keeps the instance after a build timeout', async (t) => {
    const site = await OnInstanceSite.start(t);
    const passBuildTimeout = holdTimeout(t, 3600);
    const builder = site.builder(
      { steps: ['echo begun; sleep 600'], 'keep-on-failure': 600 },
      { buildTimeout: 3600 },
    );
    const build = site.build(builder, {
      onLine: (line) => {
        if (line === 'begun') passBuildTimeout();
      },
    });
    await assert.rejects(build, withCode('build-timeout', /kept until/));
    assert.equal(site.provider.instances.length, 1);
  });
});

describe('a snapshot in the provider', () => {
  test('a snapshot in the provider is listed in the manifest, and its instance is deleted', async (t) => {
    const site = await OnInstanceSite.start(t, { makesSnapshots: true });
    const image = await site.build(site.builder());
    const [externalId] = site.provider.snapshots.keys();
    assert.deepEqual(image.snapshots, [{ provider: 'sshds', externalId }]);
    assert.deepEqual(site.provider.instances, []);
    assert.deepEqual(await site.recordFiles(), []);
    const [again] = await readImages(site.repository.directory);
    assert.deepEqual(again?.snapshots, image.snapshots);
  });

  test('a snapshot in the provider is deleted if the image is not published', async (t) => {
    const site = await OnInstanceSite.start(t, { makesSnapshots: true });
    const builder = site.builder({}, { validation: { hook: ['false'] } });
    await assert.rejects(site.build(builder), withCode('validation-failed'));
    assert.equal(site.provider.launched.length, 1);
    assert.deepEqual([...site.provider.snapshots], []);
    assert.deepEqual(await site.recordFiles(), []);
  });
});

describe('the contract of all builders', () => {
  let directory: string;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'on-instance-'));
    await mkdir(join(directory, 'base'));
  });
  after(() => rm(directory, { recursive: true }));

  imageBuilderContract(
    'OnInstanceBuilder',
    (diskimage) => {
      const provider = new SshdInstances(directory);
      return new OnInstanceBuilder(diskimage, onInstanceOf(join(directory, 'base')), {
        ...NO_SERVICES,
        instanceProvider: () => provider,
      });
    },
    ['raw'],
  );
});
