import { ArmError, type ArmModels, type Json, type ModelName } from './arm-model.ts';
import { type ArmResource, type Operation, Operations, Resources } from './arm-state.ts';
import type { DiskStore } from './disk-store.ts';

export interface ArmDoubleOptions {
  readonly subscription: string;
  /** Existing resource groups. */
  readonly resourceGroups: readonly string[];
  /** Existing regions, in the short form. */
  readonly locations: readonly string[];
  /** Number of lists that do not show a new resource. */
  readonly lag: number;
  /** Number of polls until an operation has ended. */
  readonly polls: number;
  /** Resources per page of a list. */
  readonly pageSize: number;
  /** Lifetime of a token in seconds. */
  readonly tokenLifetime: number;
  /** Max disks in a region. */
  readonly diskQuota: number;
  /** Actions that the token's role permits: `Microsoft.Compute/disks/*`. */
  readonly actions: readonly string[];
  /** True if clients reach the pages through the double, so that it can inject faults. */
  readonly relaysPages: boolean;
}

/** A disk, image or version, with the name of the container of its content. */
export interface StoredResource extends ArmResource {
  readonly content?: string | undefined;
}

/** A request for a resource. */
export interface ArmCall {
  readonly method: string;
  /** Id of the resource: the path without an action. */
  readonly id: string;
  /** Last part of the id. */
  readonly name: string;
  readonly body: unknown;
}

/** Result of a call. */
export interface ArmResponse {
  readonly status: number;
  readonly body?: unknown;
  /** Operation that continues after the response. */
  readonly operation?: Operation;
}

export type ArmHandler = (cloud: ArmCloud, call: ArmCall) => ArmResponse | Promise<ArmResponse>;

/** Resources of one subscription. */
export class ArmCloud {
  readonly options: ArmDoubleOptions;
  readonly pages: DiskStore;
  readonly operations: Operations;
  readonly resources: Resources<StoredResource>;
  readonly #models: ArmModels;

  constructor(options: ArmDoubleOptions, pages: DiskStore, models: ArmModels) {
    this.options = options;
    this.pages = pages;
    this.#models = models;
    this.operations = new Operations(options.polls);
    this.resources = new Resources(options.lag);
  }

  /** Returns the body of a request if the model accepts it. */
  body(model: ModelName, { body }: ArmCall): Json {
    return this.#models.check(model, body);
  }

  /** Returns the location of a body in the short form, in which `West Europe` and `westeurope` are the same. */
  location(body: Json): string {
    const given = typeof body.location === 'string' ? body.location : '';
    const location = given.toLowerCase().replaceAll(' ', '');
    if (this.options.locations.includes(location)) return location;
    const reason =
      given === ''
        ? 'The location property is required for this definition.'
        : `The provided location '${given}' is not available for resource type.`;
    throw new ArmError(given === '' ? 'LocationRequired' : 'LocationNotAvailableForResourceType', reason);
  }

  /**
   * Stores a resource, whose state is `Creating` until the operation ends.
   *
   * @param finish last step, which may fail
   */
  create(resource: StoredResource, finish: () => unknown = () => {}): ArmResponse {
    const { properties } = this.resources.put(resource);
    properties.provisioningState = 'Creating';
    const operation = this.operations.start(resource.id, async () => {
      try {
        await finish();
        properties.provisioningState = 'Succeeded';
      } catch (error) {
        properties.provisioningState = 'Failed';
        throw error;
      }
    });
    return { status: 202, body: visible(resource), operation };
  }

  /** Deletes a resource, and its content if nothing else uses it. */
  delete(id: string): ArmResponse {
    const resource = this.resources.find(id);
    if (resource === undefined) return { status: 204 };
    const operation = this.operations.start(id, async () => {
      this.resources.delete(id);
      const { content } = resource;
      const isUsed = this.resources.all().some((other) => other.content === content);
      if (content !== undefined && !isUsed) await this.pages.remove(content);
    });
    return { status: 202, operation };
  }
}

/** Returns a resource as clients see it. */
export function visible({ content: _, ...resource }: StoredResource): ArmResource {
  return resource;
}
