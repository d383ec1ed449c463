// Only in test:all: it needs Ansible.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { runZuulJob, startZuulJob } from '../fixtures/ansible-playbook.ts';
import { builderCommand } from '../fixtures/builder-process.ts';
import { createFakeDib } from '../fixtures/fake-dib.ts';
import { processesWith, untilGone } from '../fixtures/running-process.ts';
import { makeDisk, startSshd } from '../fixtures/sshd.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';
import { readZuulJob } from '../fixtures/zuul-job.ts';

async function createHome(t: TestContext): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'kept-node-'));
  undoAfter(t, () => rm(home, { recursive: true, force: true }));
  return home;
}

test('each job on a kept node makes its own image and deletes the builds and images of earlier ones', async (t) => {
  const home = await createHome(t);
  const dib = await createFakeDib(home);
  const { playbooks, vars } = await readZuulJob('build-and-publish-debian-image');
  const runJob = async (): Promise<{ build: string; output: string; names: readonly string[] }> => {
    const build = randomUUID().replaceAll('-', '');
    const variables = {
      ...vars,
      build_diskimage_command: join(dib.directory, 'disk-image-create'),
      publish_image_compressed_formats: [],
      zuul: { build },
    };
    const { output, returned } = await runZuulJob({ playbooks, variables, home });
    const { artifacts } = returned.zuul as { artifacts: readonly { url: string }[] };
    return { build, output, names: artifacts.map(({ url }) => url.replace('images/', '')) };
  };
  // Leftover of an aborted job: some of the formats, one of them incomplete.
  const aborted = join(home, 'dib-images/debian', 'f'.repeat(32));
  await mkdir(aborted, { recursive: true });
  await writeFile(join(aborted, 'debian.qcow2'), 'incomplete');

  for (const { build, output, names } of [await runJob(), await runJob()]) {
    assert.deepEqual(names, [`${build}-debian.qcow2`, `${build}-debian.raw`]);
    // Zuul prints loop items in full.
    assert.match(
      output,
      /Set the files\] \*+\nok: \[node\] => \(item=qcow2\)\nok: \[node\] => \(item=raw\)\n/,
    );
  }
  const last = await runJob();
  assert.deepEqual(await readdir(join(home, 'dib-images/debian')), [last.build]);
  const published = await readdir(join(home, 'zuul-output/logs/images'));
  assert.deepEqual(published.toSorted(), last.names);
  const files = await readdir(join(home, 'dib-images/debian', last.build));
  assert.deepEqual(files.toSorted(), ['debian.d', 'debian.qcow2', 'debian.raw']);
});

test('an aborted Zuul job leaves neither an upload nor credentials on a kept node', async (t) => {
  const home = await createHome(t);
  const disk = join(home, 'disk');
  const key = join(home, 'key');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
  await makeDisk(disk, (await readFile(`${key}.pub`, 'utf8')).trim());
  const sshd = await startSshd(disk, { shared: join(import.meta.dirname, '../..') });
  undoAfter(t, () => sshd.kill());

  const pool = join(disk, 'opt/pool');
  await mkdir(pool);
  const name = `pool-${randomUUID()}`;
  const provider = { name, type: 'directory', directory: '/opt/pool', images: [], 'bandwidth-limit': 1000 };
  const config = { 'images-dir': '/opt/images', diskimages: [], providers: [provider] };
  await writeFile(join(disk, 'opt/nodepool.yaml'), JSON.stringify(config));
  const image = join(disk, 'opt/debian.qcow2');
  execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', '-o', 'preallocation=full', image, '8M']);
  const ssh = ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'ControlMaster=no'].map(
    (option) => `-o${option}`,
  );
  const recordPath = ['sh', '-c', 'echo "$OS_CLIENT_CONFIG_FILE" > /opt/path; exec "$@"', '-'];
  const job = await startZuulJob({
    playbooks: ['playbooks/zuul-deletes-images/run.yaml'],
    home,
    variables: {
      ansible_connection: 'ssh',
      ansible_host: '127.0.0.1',
      ansible_port: sshd.port,
      ansible_user: 'root',
      ansible_ssh_private_key_file: key,
      ansible_ssh_args: ssh.join(' '),
      ansible_remote_tmp: '/tmp',
      ansible_user_dir: '/opt',
      build_diskimage_command: 'true',
      build_diskimage_formats: [],
      build_diskimage_elements: [],
      build_diskimage_image_name: 'debian',
      image_providers: [name],
      configure_clouds_config: { clouds: { example: { auth: { password: 'correct-horse' } } } },
      upload_image_file: '/opt/debian.qcow2',
      upload_image_config: '/opt/nodepool.yaml',
      upload_image_command: [...recordPath, ...builderCommand().flat()],
      zuul: { build: 'f'.repeat(32) },
    },
  });
  undoAfter(t, () => job.abort());
  await waitUntil('the upload', async () => {
    job.assertRunning();
    return (await readdir(pool)).some((file) => file.endsWith('.part'));
  });
  const onNode = (...command: readonly string[]): string => {
    const login = [...ssh, '-q', '-i', key, '-p', `${sshd.port}`, 'root@127.0.0.1'];
    return execFileSync('ssh', [...login, ...command], { encoding: 'utf8' });
  };
  const credentials = (await readFile(join(disk, 'opt/path'), 'utf8')).trim();
  assert.match(onNode('cat', credentials), /correct-horse/);
  const processes = await processesWith(name);

  await job.abort();
  await Promise.all(processes.map(untilGone));
  assert.deepEqual(await readdir(pool), []);
  assert.doesNotMatch(onNode('ls', '/tmp'), /^ansible\./m);
});
