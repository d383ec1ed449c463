import { ArmError, type ArmModels, type Json, type ModelName } from './arm-model.ts';
import { type ArmResource, type Operation, Operations, Resources } from './arm-state.ts';
import type { DiskStore } from './disk-store.ts';

export interface ArmDoubleOptions {
  readonly subscription: string;
  /** Resource groups that exist. */
  readonly resourceGroups: readonly string[];
  /** Regions that exist, in the short form. */
  readonly locations: readonly string[];
  /** Lists in which a new resource does not appear. */
  readonly lag: number;
  /** Questions for an operation until it is over. */
  readonly polls: number;
  /** Resources in a page of a list. */
  readonly pageSize: number;
  /** Seconds for which a token is valid. */
  readonly tokenLifetime: number;
  /** Most disks in a region. */
  readonly diskQuota: number;
  /** Actions that the token's role permits: `Microsoft.Compute/disks/*`. */
  readonly actions: readonly string[];
  /** Whether clients reach the pages through the double, so that it can inject faults there. */
  readonly relaysPages: boolean;
}

/** A disk, image or version, with the name of the container that has its content. */
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

/** What a call leads to. */
export interface ArmResponse {
  readonly status: number;
  readonly body?: unknown;
  /** That continues after the response. */
  readonly operation?: Operation;
}

export type ArmHandler = (cloud: ArmCloud, call: ArmCall) => ArmResponse | Promise<ArmResponse>;

/** The resources of one subscription. */
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

  /** The body of a request, once the model accepts it. */
  body(model: ModelName, { body }: ArmCall): Json {
    return this.#models.check(model, body);
  }

  /** The location of a body, in the short form: `West Europe` and `westeurope` are the same. */
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
   * Stores a resource, which is `Creating` until the operation is over.
   *
   * @param finish last step, which may refuse
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

  /** Deletes a resource, and its content if nothing else has it. */
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

/** A resource as clients see it. */
export function visible({ content: _, ...resource }: StoredResource): ArmResource {
  return resource;
}
