import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { TestContext } from 'node:test';
import type { CloudSettings } from '../../../packages/provider-openstack/src/cloud-settings.ts';
import { LoopbackServer, type Reply, type Request } from '../loopback-server.ts';
import { GlanceDouble } from './glance-double.ts';
import { SwiftDouble } from './swift-double.ts';

export interface DoubleRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** A Glance task. */
interface StoredTask {
  readonly id: string;
  status: string;
  message: string;
  result: { image_id?: string } | null;
}

/** Called first for each request. A result is the response. */
export type Intercept = (request: DoubleRequest) => Reply | undefined;

/**
 * A cloud with import tasks on loopback: Glance v2 with tasks and Swift, without Keystone. It behaves as no real
 * Glance does in a test.
 */
export class CloudDouble extends LoopbackServer {
  readonly glance: GlanceDouble = new GlanceDouble();
  readonly swift: SwiftDouble = new SwiftDouble();
  /** `METHOD path` of each request. */
  readonly requests: string[] = [];
  intercept: Intercept = () => undefined;
  /** Error messages of the next tasks. */
  readonly taskFailures: string[] = [];
  readonly #tasks = new Map<string, StoredTask>();

  static async start(t: TestContext): Promise<CloudDouble> {
    const double = await new CloudDouble().listen();
    t.after(() => double[Symbol.asyncDispose]());
    return double;
  }

  settings(imageApiUseTasks = false): CloudSettings {
    return {
      name: 'double',
      auth: { type: 'none', endpoint: this.endpoint },
      image: { type: 'image', interface: 'public', endpointOverride: `${this.endpoint}/v2` },
      objectStore: {
        type: 'object-store',
        interface: 'public',
        endpointOverride: `${this.endpoint}/v1/AUTH_test`,
      },
      compute: { type: 'compute', interface: 'public' },
      network: { type: 'network', interface: 'public' },
      tls: { verify: true },
      apiTimeout: 10,
      imageFormat: 'qcow2',
      imageApiUseTasks,
      disableVendorAgent: imageApiUseTasks ? { vm_mode: 'hvm', xenapi_use_agent: 'False' } : {},
    };
  }

  protected override respond({ method, url, headers, body }: Request): Reply {
    const request = { method, path: url.pathname, query: url.searchParams, headers, body };
    this.requests.push(`${method} ${url.pathname}`);
    const reply = this.intercept(request) ??
      this.glance.handle(request) ??
      this.swift.handle(request) ??
      this.#handleTask(request) ?? { status: 404 };
    const isText = typeof reply.body === 'string';
    return { ...reply, headers: { ...(isText && { 'content-type': 'text/html' }), ...reply.headers } };
  }

  #handleTask({ method, path, body }: DoubleRequest): Reply | undefined {
    if (method === 'POST' && path === '/v2/tasks') return { status: 201, body: this.#createTask(body) };
    const task = this.#tasks.get(path.replace('/v2/tasks/', ''));
    if (task === undefined) return undefined;
    const shown = { ...task };
    if (task.status === 'processing') task.status = task.message === '' ? 'success' : 'failure';
    return { status: 200, body: shown };
  }

  /** Runs at once, but reports `processing` once. */
  #createTask(body: Buffer): StoredTask {
    const { input } = JSON.parse(body.toString()) as {
      input: { import_from: string; image_properties: { name: string } };
    };
    const [, container = '', name = ''] = /^([^/]+)\/(.+)$/.exec(input.import_from) ?? [];
    const data = this.swift.object(container, name)?.data;
    const message = this.taskFailures.shift() ?? (data === undefined ? 'no such object' : '');
    const properties = { ...input.image_properties, disk_format: 'vhd', container_format: 'ovf' };
    const image = message === '' && data ? this.glance.importImage(properties, data) : undefined;
    const task: StoredTask = {
      id: randomUUID(),
      status: 'processing',
      message,
      result: image === undefined ? null : { image_id: image.id },
    };
    this.#tasks.set(task.id, task);
    return task;
  }
}
