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

/** A resource that has tags. */
export interface Resource {
  readonly id: string;
  readonly createdAt: Date;
  tags: Tag[];
  /** Number of lists that do not show it yet. */
  hiddenLists: number;
}

/** An AMI in the double. */
export interface ImageState extends Resource {
  readonly name: string;
  readonly description?: string | undefined;
  readonly architecture: string;
  /** Present if the image is Windows. */
  readonly platform?: 'Windows' | undefined;
  registration: Partial<RegisterImageRequest>;
  readonly snapshots: readonly string[];
  readonly owner: string;
  isPublic: boolean;
  state: 'pending' | 'available' | 'failed';
  /** Number of descriptions that show it as pending. */
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

/** A snapshot in the double. */
export interface SnapshotState extends Resource {
  /** Size in GiB. */
  readonly volumeSize: number;
  readonly description?: string | undefined;
  readonly parent?: string | undefined;
  readonly clientToken?: string | undefined;
  state: 'pending' | 'completed' | 'error';
  stateMessage?: string;
  /** Number of descriptions that show it as pending once it is complete. */
  pendingLists: number;
  /** True if its blocks are complete. */
  isComplete: boolean;
  /** SHA-256 of each block of the parent when the snapshot was started, in base64. */
  readonly inherited?: ReadonlyMap<number, string>;
  /** SHA-256 of each block that was put, in base64. */
  readonly blocks: Map<number, string>;
  /** Blocks of a captured snapshot. The double does not keep other blocks. */
  readonly data?: readonly Buffer[];
  readonly sharedWith: Set<string>;
}

/** A key pair in the double. */
export interface KeyPairState extends Resource {
  readonly name: string;
  readonly publicKey: string;
}

/** An instance type in the double. */
export interface DoubleInstanceType {
  readonly name: string;
  readonly architecture: string;
  /** Memory in MiB. */
  readonly memory: number;
  readonly cpus: number;
  readonly gpus?: number;
  readonly isBareMetal?: boolean;
}

/** An instance in the double. */
export interface InstanceState extends Resource {
  /** Request that launched it. */
  readonly request: RunInstancesRequest;
  /** Own loopback address. */
  readonly address: string;
  state: InstanceStateName;
  stateReason?: { readonly Code: string; readonly Message: string };
  machine?: Machine;
  /** Disk of an instance that is off. */
  disk?: Disk;
  /** Administrator's password if the instance runs Windows. */
  readonly password: string | undefined;
}

/** The resources of one kind in one region. */
export class Resources<R extends Resource> {
  readonly #byId = new Map<string, R>();
  readonly #prefix: string;
  readonly #unknown: string;
  readonly #lag: number;

  /**
   * @param prefix prefix of ids: `ami`
   * @param unknown error code for an id that does not exist: `InvalidAMIID.NotFound`
   * @param lag number of lists that do not show a new resource
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

  /** Returns the resources that a list shows by now. */
  list(): R[] {
    return this.all().filter((resource) => resource.hiddenLists-- <= 0);
  }

  all(): R[] {
    return [...this.#byId.values()];
  }
}

/** Checks a resource against the filters of a `Describe…` request, whose values may have the wildcards `*` and `?`. */
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
 * Returns the tags of one kind of resource in a request that creates it.
 *
 * @throws AwsError for a kind other than `accepted`
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
