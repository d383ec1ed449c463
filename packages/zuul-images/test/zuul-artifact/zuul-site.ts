import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { BuilderServices, DiskImage } from '@nodepool-builder/image-builder';
import { importedImageId } from '@nodepool-builder/image-builder/internal';
import { NO_SERVICES } from '../../../../test/fixtures/builder-services.ts';
import { type Nginx, startNginx } from '../../../../test/fixtures/nginx.ts';
import { RepositoryFixture } from '../../../../test/fixtures/repository-fixture.ts';
import type { ArtifactRow, BuildRow } from '../../../../test/fixtures/zuul/build-row.ts';
import { ZuulDouble, type ZuulDoubleOptions } from '../../../../test/fixtures/zuul/zuul-double.ts';
import { ZuulArtifactBuilder } from '../../src/index.ts';
import type { ZuulSettings } from '../../src/zuul-settings.ts';

/** Query of the artifact URLs. */
export const SIGNATURE = 'X-Amz-Signature=of-a-secret';

/** Artifact server for all tests in a file, which rejects requests with credentials. */
export class ArtifactServer {
  readonly nginx: Nginx;
  /** Disk of 4 MiB, half of which is a hole. */
  readonly raw: Buffer;
  readonly qcow2: Buffer;

  private constructor(nginx: Nginx, raw: Buffer, qcow2: Buffer) {
    this.nginx = nginx;
    this.raw = raw;
    this.qcow2 = qcow2;
  }

  static async start(): Promise<ArtifactServer> {
    const directory = await mkdtemp(join(tmpdir(), 'artifacts-'));
    const [raw, qcow2] = [join(directory, 'image.raw'), join(directory, 'image.qcow2')];
    try {
      await writeFile(raw, Buffer.concat([randomBytes(2 ** 21), Buffer.alloc(2 ** 21)]));
      execFileSync('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, qcow2]);
      const nginx = await startNginx('if ($http_authorization) { return 403; }');
      return new ArtifactServer(nginx, await readFile(raw), await readFile(qcow2));
    } finally {
      await rm(directory, { recursive: true });
    }
  }

  /** The same disk in a longer file. */
  get otherQcow2(): Buffer {
    return Buffer.concat([this.qcow2, Buffer.alloc(2 ** 16)]);
  }

  /** Serves a file. Returns its artifact. */
  async put(
    path: string,
    content: Buffer,
    metadata: Readonly<Record<string, unknown>>,
  ): Promise<ArtifactRow> {
    const file = join(this.nginx.directory, path);
    await mkdir(join(file, '..'), { recursive: true });
    await writeFile(file, content);
    return { name: path, url: `${this.nginx.url}/${path}?${SIGNATURE}`, metadata };
  }

  /** Stops serving a file. */
  async remove(path: string): Promise<void> {
    await rm(join(this.nginx.directory, path));
  }
}

/** Returns the header of a 4 MiB qcow2 image with a backing file. */
export function overlayOf(backingFile: string): Buffer {
  const header = Buffer.alloc(2 ** 18);
  header.write('QFI\xfb', 'latin1');
  header.writeUInt32BE(2, 4); // version
  header.writeBigUInt64BE(72n, 8); // offset of the name
  header.writeUInt32BE(backingFile.length, 16);
  header.writeUInt32BE(16, 20); // bits of a cluster
  header.writeBigUInt64BE(2n ** 22n, 24);
  header.writeUInt32BE(1, 36); // entries of the first table
  header.writeBigUInt64BE(2n ** 16n, 40); // its offset
  header.writeBigUInt64BE(2n ** 17n, 48); // offset of the table of reference counts
  header.writeUInt32BE(1, 56);
  header.write(backingFile, 72);
  return header;
}

/** A Zuul with a job that builds an image, and a repository. */
export class ZuulSite {
  readonly zuul: ZuulDouble;
  readonly repository: RepositoryFixture;
  readonly server: ArtifactServer;
  /** Directory of this test's artifacts. */
  readonly folder: string;

  private constructor(zuul: ZuulDouble, repository: RepositoryFixture, server: ArtifactServer) {
    this.zuul = zuul;
    this.repository = repository;
    this.server = server;
    this.folder = randomBytes(8).toString('hex');
  }

  static async start(
    t: TestContext,
    server: ArtifactServer,
    options: ZuulDoubleOptions = {},
  ): Promise<ZuulSite> {
    const zuul = await ZuulDouble.start(options);
    t.after(() => zuul[Symbol.asyncDispose]());
    return new ZuulSite(zuul, await RepositoryFixture.open(t), server);
  }

  /** Settings of the image. */
  get image(): ZuulSettings {
    return imageOf(this.zuul);
  }

  builder(
    diskimage: Partial<DiskImage> = {},
    settings: Partial<ZuulSettings> = {},
    services: Pick<BuilderServices, 'checkAttestations'> = NO_SERVICES,
  ): ZuulArtifactBuilder {
    return new ZuulArtifactBuilder(
      { name: 'noble', formats: ['qcow2'], ...diskimage },
      { ...this.image, ...settings },
      services,
    );
  }

  /** Serves a file for this test alone. */
  async put(
    name: string,
    content: Buffer,
    metadata: Readonly<Record<string, unknown>>,
  ): Promise<ArtifactRow> {
    return await this.server.put(`${this.folder}/${name}`, content, metadata);
  }

  /** Adds a build that returned a qcow2 image. */
  async addQcow2(name: string = 'image.qcow2', content: Buffer = this.server.qcow2): Promise<BuildRow> {
    const artifact = await this.put(name, content, { type: 'image-qcow', sha256: digest('sha256', content) });
    return this.zuul.table().add([artifact]);
  }

  /** Returns the number of bytes sent from each file of this test. */
  async sent(): Promise<Readonly<Record<string, number>>> {
    const sent: Record<string, number> = {};
    for (const { path, bytes } of await this.server.nginx.requests()) {
      const [, folder, name = ''] = path.split('/');
      if (folder === this.folder) sent[name] = (sent[name] ?? 0) + bytes;
    }
    return sent;
  }
}

/** Returns the image-id that refers to a build of `noble`. */
export function idOf({ uuid, end }: BuildRow): string {
  return importedImageId({ image: 'noble', uuid, endTime: end?.getTime() ?? 0 });
}

/** Returns the settings of the image that the double's job builds. */
export function imageOf(zuul: ZuulDouble): ZuulSettings {
  return {
    'api-url': `${zuul.url}t/example`,
    project: 'opendev/system-config',
    pipelines: ['periodic', 'post'],
    job: 'build-ubuntu-noble-image',
    artifacts: [
      { format: 'qcow2', type: 'image-qcow' },
      { format: 'raw', type: 'image-raw' },
      { format: 'tar', type: 'image-tar' },
    ],
    'poll-interval': 60,
    'require-sha256': false,
    pause: false,
    'build-timeout': 60,
  };
}

export function digest(algorithm: 'md5' | 'sha256', content: Buffer): string {
  return createHash(algorithm).update(content).digest('hex');
}
