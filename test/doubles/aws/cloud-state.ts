import { randomBytes } from 'node:crypto';
import type {
  Filter,
  InstanceStateName,
  RegisterImageRequest,
  RunInstancesRequest,
  Tag,
  TagSpecification,
  UserBucket,
} from '@aws-sdk/client-ec2';
import type { Disk, Machine } from '../line-machine.ts';
import { AwsError } from './model.ts';

/** A thing of the cloud that has tags. */
export interface Resource {
  readonly id: string;
  readonly createdAt: Date;
  tags: Tag[];
  /** Lists in which it does not appear yet. */
  hiddenLists: number;
}

/** An AMI of the double. */
export interface ImageState extends Resource {
  readonly name: string;
  readonly description?: string | undefined;
  readonly architecture: string;
  /** Of Windows. */
  readonly platform?: 'Windows' | undefined;
  registration: Partial<RegisterImageRequest>;
  readonly snapshots: readonly string[];
  readonly owner: string;
  isPublic: boolean;
  state: 'pending' | 'available' | 'failed';
  /** Descriptions in which it stays pending. */
  pendingLists: number;
  deprecatedAt?: Date;
  readonly sharedWith: Set<string>;
}

/** A task of ImportSnapshot or ImportImage. */
export interface ImportState extends Resource {
  readonly bucket: UserBucket;
  readonly format: string;
  readonly clientToken?: string | undefined;
  readonly architecture: string;
  status: 'active' | 'completed' | 'deleted';
  statusMessage: string;
  pendingLists: number;
  snapshotId?: string;
  imageId?: string;
}

/** A snapshot of the double. */
export interface SnapshotState extends Resource {
  /** GiB. */
  readonly volumeSize: number;
  readonly description?: string | undefined;
  readonly parent?: string | undefined;
  readonly clientToken?: string | undefined;
  state: 'pending' | 'completed' | 'error';
  stateMessage?: string;
  /** Descriptions in which it stays pending once it is complete. */
  pendingLists: number;
  /** Whether its blocks are complete. */
  isComplete: boolean;
  /** SHA-256 of each block of the parent at the start, in base64. */
  readonly inherited?: ReadonlyMap<number, string>;
  /** SHA-256 of each block that was put, in base64. */
  readonly blocks: Map<number, string>;
  /** The blocks of a captured snapshot. The double keeps no others. */
  readonly data?: readonly Buffer[];
  readonly sharedWith: Set<string>;
}

/** A key pair of the double. */
export interface KeyPairState extends Resource {
  readonly name: string;
  readonly publicKey: string;
}

/** An instance type of the double. */
export interface DoubleInstanceType {
  readonly name: string;
  readonly architecture: string;
  /** MiB. */
  readonly memory: number;
  readonly cpus: number;
  readonly gpus?: number;
  readonly isBareMetal?: boolean;
}

/** An instance of the double. */
export interface InstanceState extends Resource {
  /** The request that launched it. */
  readonly request: RunInstancesRequest;
  /** Its own address of loopback. */
  readonly address: string;
  state: InstanceStateName;
  stateReason?: { readonly Code: string; readonly Message: string };
  machine?: Machine;
  /** Of an instance that is off. */
  disk?: Disk;
  /** Administrator's password, if it runs Windows. */
  readonly password: string | undefined;
}

/** The resources of one kind in one region. */
export class Resources<R extends Resource> {
  readonly #byId = new Map<string, R>();
  readonly #prefix: string;
  readonly #unknown: string;
  readonly #lag: number;

  /**
   * @param prefix of ids: `ami`
   * @param unknown error code for an id that does not exist: `InvalidAMIID.NotFound`
   * @param lag lists in which a new resource does not appear
   */
  constructor(prefix: string, unknown: string, lag: number) {
    this.#prefix = prefix;
    this.#unknown = unknown;
    this.#lag = lag;
  }

  add(resource: Omit<R, keyof Resource> & { readonly tags?: readonly Tag[] | undefined }): R {
    const added = {
      ...resource,
      id: `${this.#prefix}-${randomBytes(8).toString('hex')}0`,
      createdAt: new Date(),
      tags: [...(resource.tags ?? [])],
      hiddenLists: this.#lag,
    } as R;
    this.#byId.set(added.id, added);
    return added;
  }

  /** @throws AwsError if it does not exist */
  get(id: string | undefined): R {
    const found = this.#byId.get(id ?? '');
    if (found !== undefined) return found;
    throw new AwsError(this.#unknown, `The ${this.#prefix} ID '${id}' does not exist`);
  }

  find(id: string): R | undefined {
    return this.#byId.get(id);
  }

  delete(id: string): void {
    this.#byId.delete(id);
  }

  /** All that a list shows by now. */
  list(): R[] {
    return this.all().filter((resource) => resource.hiddenLists-- <= 0);
  }

  all(): R[] {
    return [...this.#byId.values()];
  }
}

/** Whether a resource passes the filters of a `Describe…` request. Values may have the wildcards `*` and `?`. */
export function passes(
  resource: Resource,
  filters: readonly Filter[] | undefined,
  fields: Readonly<Record<string, string | undefined>>,
): boolean {
  return (filters ?? []).every(({ Name: name = '', Values: values = [] }) => {
    const own = name.startsWith('tag:')
      ? resource.tags.filter(({ Key }) => Key === name.slice(4)).map(({ Value = '' }) => Value)
      : name === 'tag-key'
        ? resource.tags.map(({ Key = '' }) => Key)
        : [fields[name]];
    if (!name.startsWith('tag') && !(name in fields)) {
      throw new AwsError('InvalidParameterValue', `The filter '${name}' is invalid`);
    }
    return own.some((text) => values.some((value) => text !== undefined && matches(text, value)));
  });
}

function matches(text: string, pattern: string): boolean {
  const source = pattern.replaceAll(/[.+^${}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(`^${source.replaceAll('*', '.*').replaceAll('?', '.')}$`, 's').test(text);
}

/**
 * Tags of one kind of resource in a request that creates it.
 *
 * @throws AwsError for another kind than `accepted`
 */
export function tagsFor(
  kind: string,
  specifications: readonly TagSpecification[] | undefined,
  accepted: readonly string[] = [kind],
): Tag[] {
  const wrong = specifications?.find(({ ResourceType: type = '' }) => !accepted.includes(type));
  if (wrong !== undefined) {
    const reason = `'${wrong.ResourceType}' is not a valid taggable resource type for this operation.`;
    throw new AwsError('InvalidParameterValue', reason);
  }
  const tags = (specifications ?? []).filter(({ ResourceType: type }) => type === kind);
  return tags.flatMap(({ Tags = [] }) => Tags);
}
