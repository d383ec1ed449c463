import { randomUUID } from 'node:crypto';
import { ArmError } from './arm-model.ts';

/** A resource in wire format. */
export interface ArmResource {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  readonly location?: string;
  readonly tags?: Readonly<Record<string, string>>;
  /** Mutable members, including `provisioningState`. */
  readonly properties: Record<string, unknown>;
  readonly sku?: unknown;
}

interface Entry<R> {
  readonly resource: R;
  /** Number of lists that do not show it yet. */
  hiddenLists: number;
  /** Creation time in milliseconds. */
  readonly createdAt: number;
}

/** Milliseconds after which each list shows a resource. */
const MAX_LAG = 60_000;

/** Resources by id. As in Azure, ids are compared without regard to case. */
export class Resources<R extends ArmResource = ArmResource> {
  readonly #entries = new Map<string, Entry<R>>();
  readonly #lag: number;

  /** @param lag number of lists that do not show a new resource, during its first minute */
  constructor(lag: number) {
    this.#lag = lag;
  }

  put(resource: R): R {
    const id = resource.id.toLowerCase();
    const { hiddenLists = this.#lag, createdAt = performance.now() } = this.#entries.get(id) ?? {};
    this.#entries.set(id, { resource, hiddenLists, createdAt });
    return resource;
  }

  find(id: string): R | undefined {
    return this.#entries.get(id.toLowerCase())?.resource;
  }

  /** @throws ArmError if it does not exist */
  get(id: string): R {
    const found = this.find(id);
    if (found !== undefined) return found;
    const [group = '', name = ''] = [
      /resourceGroups\/([^/]+)/i.exec(id)?.[1],
      id.split('/Microsoft.Compute/')[1],
    ];
    const reason = `The Resource 'Microsoft.Compute/${name}' under resource group '${group}' was not found.`;
    throw new ArmError('ResourceNotFound', reason, 404);
  }

  delete(id: string): void {
    this.#entries.delete(id.toLowerCase());
  }

  /** Returns the children of a path that a list shows by now. */
  list(parent: string): R[] {
    const prefix = `${parent.toLowerCase()}/`;
    return [...this.#entries]
      .filter(([id]) => id.startsWith(prefix) && !id.slice(prefix.length).includes('/'))
      .filter(([, entry]) => entry.hiddenLists-- <= 0 || performance.now() - entry.createdAt > MAX_LAG)
      .map(([, { resource }]) => resource);
  }

  all(): R[] {
    return [...this.#entries.values()].map(({ resource }) => resource);
  }
}

/** An operation that takes longer than its request. */
export interface Operation {
  readonly id: string;
  /** Resource that it changes. */
  readonly target: string;
  /** Remaining polls of it, or of the resource, until it ends. */
  rest: number;
  status: 'InProgress' | 'Succeeded' | 'Failed';
  error?: { readonly code: string; readonly message: string };
  /** Body of the final response. */
  result?: unknown;
  readonly finish: () => unknown;
}

export class Operations {
  readonly #byId = new Map<string, Operation>();
  readonly #polls: number;

  /** @param polls number of polls until an operation ends */
  constructor(polls: number) {
    this.#polls = polls;
  }

  /**
   * @param finish called at the end; its result is the final response, and an ArmError makes the operation fail
   */
  start(target: string, finish: () => unknown): Operation {
    const operation: Operation = {
      id: randomUUID(),
      target: target.toLowerCase(),
      rest: this.#polls,
      status: 'InProgress',
      finish,
    };
    this.#byId.set(operation.id, operation);
    return operation;
  }

  /** @throws ArmError if it does not exist */
  async ask(id: string): Promise<Operation> {
    const operation = this.#byId.get(id);
    if (operation === undefined) throw new ArmError('OperationNotFound', `no operation ${id}`, 404);
    await advance(operation);
    return operation;
  }

  /** Advances the operations on a resource when a client requests it. */
  async askFor(target: string): Promise<void> {
    const wanted = target.toLowerCase();
    for (const operation of this.#byId.values()) if (operation.target === wanted) await advance(operation);
  }
}

async function advance(operation: Operation): Promise<void> {
  if (operation.status !== 'InProgress' || operation.rest-- > 0) return;
  operation.rest = Number.POSITIVE_INFINITY; // prevents a second end while this one runs
  try {
    operation.result = await operation.finish();
    operation.status = 'Succeeded';
  } catch (error) {
    operation.status = 'Failed';
    const code = error instanceof ArmError ? error.code : 'InternalExecutionError';
    operation.error = { code, message: error instanceof Error ? error.message : String(error) };
  }
}
