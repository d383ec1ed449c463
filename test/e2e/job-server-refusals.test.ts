import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { Admin, JobServer, type JobServerOptions, Worker } from '@nodepool-builder/gearman-node';
import { EXIT_CODES } from '../../packages/nodepool-builder/src/terms/exit-codes.ts';
import { freePort } from '../../scripts/free-port.ts';
import {
  type CertificateAuthority,
  type CertificateFiles,
  createAuthority,
} from '../fixtures/certificate-authority.ts';
import { runInProcess } from '../fixtures/command-in-process.ts';
import { setUp } from '../fixtures/set-up.ts';
import { waitUntil } from '../fixtures/wait-until.ts';

let directory: string;
let authority: CertificateAuthority;
let stranger: CertificateAuthority;
let server: CertificateFiles;
let client: CertificateFiles;
let alien: CertificateFiles;
const servers: JobServer[] = [];

setUp(async (undo) => {
  directory = await mkdtemp(join(tmpdir(), 'job-server-refusals-'));
  undo(() => rm(directory, { recursive: true, force: true }));
  undo(() => Promise.all(servers.map((one) => one.close())));
  await mkdir(join(directory, 'images'));
  authority = await createAuthority(join(directory, 'authority'));
  stranger = await createAuthority(join(directory, 'stranger'));
  [server, client, alien] = await Promise.all([
    authority.issue('gearmand', '127.0.0.1'),
    authority.issue('client'),
    stranger.issue('alien'),
  ]);
});

function pem({ cert, key }: CertificateFiles) {
  return { cert: readFileSync(cert), key: readFileSync(key) };
}

/** Starts a job server that requires client certificates of our authority. */
function mutual() {
  return { ...pem(server), ca: readFileSync(authority.ca), requestCert: true, rejectUnauthorized: true };
}

async function listen(options: JobServerOptions): Promise<number> {
  const started = new JobServer(options);
  servers.push(started);
  return (await started.listen(await freePort())).port;
}

/** Runs a command with one job server. */
async function run(line: string, port: number, settings: object) {
  const config = join(directory, `${port}.yaml`);
  const own = { 'images-dir': 'images', manager: { store: 'none.sqlite' }, diskimages: [{ name: 'docs' }] };
  const list = [{ host: '127.0.0.1', port, ...settings }];
  await writeFile(config, JSON.stringify({ ...own, 'gearman-servers': list }));
  return await runInProcess(...line.split(' '), '-c', config);
}

describe('commands that a job server rejects', () => {
  const ours = () => ({ 'ssl-ca': authority.ca });
  const cases: Readonly<
    Record<string, readonly [options: () => JobServerOptions, settings: () => object, error: RegExp]>
  > = {
    'the server’s certificate is by another authority': [
      () => ({ tls: pem(server) }),
      () => ({ 'ssl-ca': stranger.ca }),
      /TLS with job server 127\.0\.0\.1:\d+ failed: (?:unable to verify|self-signed).*; correct host, port and ssl- keys/,
    ],
    'the server’s certificate has another name': [
      () => ({ tls: pem(client) }),
      ours,
      /TLS with job server \S+ failed: .*127\.0\.0\.1 is not cert's CN.*; correct|altnames|cert's/,
    ],
    'the server speaks plain text': [() => ({}), ours, /TLS with job server \S+ failed: .*; correct/],
    'the server expects TLS': [
      () => ({ tls: pem(server) }),
      () => ({}),
      /job server \S+ closed the connection; it expects TLS, or is not a job server; correct host, port and ssl- keys/,
    ],
    'the server wants a client certificate': [
      () => ({ tls: mutual() }),
      ours,
      /job server \S+ (?:failed: .*certificate required|closed the connection; it may not trust ssl-cert); correct/,
    ],
    'the server does not trust the client’s certificate': [
      () => ({ tls: mutual() }),
      () => ({ ...ours(), 'ssl-cert': alien.cert, 'ssl-key': alien.key }),
      /job server \S+ (?:failed: .*|closed the connection; it may not trust ssl-cert); correct host, port and ssl- keys/,
    ],
  };
  for (const [name, [options, settings, error]] of Object.entries(cases)) {
    it(`a command exits with the code "refused" if ${name}`, async () => {
      const port = await listen(options());
      for (const line of ['image-build docs', 'image-list --offered', 'logs docs-1', 'cancel docs']) {
        const { code, stderr } = await run(line, port, settings());
        assert.equal(code, EXIT_CODES.refused.code, `${line}: ${stderr}`);
        assert.match(stderr, error, line);
        assert.equal(stderr.trimEnd().split('\n').length, 1, stderr);
      }
    });
  }

  it('a command exits with the code "refused" if the access list does not let it submit the job', async (t) => {
    const port = await listen({ tls: mutual(), access: { client: { register: ['image-'] } } });
    const tls = { ...pem(client), ca: readFileSync(authority.ca) };
    const worker = new Worker({ servers: [{ host: '127.0.0.1', port, tls }] });
    t.after(() => worker.close());
    const functions = ['image-build:docs', 'image-builder-status:one', 'image-log:docs-1'];
    worker.setFunctions(new Map(functions.map((name) => [name, () => ''])));
    const settings = { ...ours(), 'ssl-cert': client.cert, 'ssl-key': client.key };
    const admin = new Admin({ host: '127.0.0.1', port, tls });
    t.after(() => admin.close());
    await waitUntil('the functions', async () => (await admin.status()).length === functions.length);
    for (const line of ['image-build docs', 'logs docs-1', 'cancel docs']) {
      const { code, stderr } = await run(line, port, settings);
      assert.equal(code, EXIT_CODES.refused.code, `${line}: ${stderr}`);
      assert.match(
        stderr,
        /ACCESS_DENIED: Not allowed to submit jobs of this function, image-\S+; add it to "submit" of this certificate in the access list/,
      );
    }
  });
});
