import type { Material } from '../attestation.ts';
import type { CheckResult } from '../diagnosis/check-result.ts';
import type { ImageFormat } from '../formats.ts';
import type { CheckOptions, OperationOptions } from '../types.ts';

/** Parameters of a launch. */
export interface LaunchRequest {
  /** Identifies the build, for example by its image-id. {@link InstanceProvider.list} returns it. */
  readonly buildId: string;
  /** Base image: a path if the provider uses files, or else a name or id in the provider. */
  readonly image: string;
  /** Format of a base image that is a file. Default: from its extension. */
  readonly format?: ImageFormat;
  /** Minimum memory in MiB (`min-ram`). Default: the provider's. */
  readonly minRam?: number;
  /** Part of the flavor's name (`name-filter`), if the provider has flavors. Default: any flavor. */
  readonly nameFilter?: string;
  /** Public key for the login, as a line of `authorized_keys`. The system in the base image installs it. */
  readonly publicKey: string;
  /** User data for cloud-init or its equivalent in the image. Default: none. */
  readonly userData?: string;
  /** TCP port of the instance that must be reachable, such as 22. */
  readonly port: number;
}

/** Address of a service of an instance. */
export interface InstanceAddress {
  readonly host: string;
  readonly port: number;
}

/** Resolves if the service at the address responds; rejects if it does not. */
export type Probe = (address: InstanceAddress, signal: AbortSignal) => Promise<void>;

/**
 * State of an instance: being launched, running, or powered off with a complete disk. `failed` covers all other cases:
 * it could not be launched, crashed, was ended by others, or no longer exists.
 */
export type InstanceState = 'starting' | 'running' | 'stopped' | 'failed';

/** Parameters of a capture. */
export interface CaptureRequest {
  readonly imageId: string;
}

/** Settings of {@link CapturedImage.save}. */
export interface SaveOptions extends OperationOptions {
  /** Maximum virtual size of a converted disk, in bytes. Default 256 GiB. */
  readonly maxDiskSize?: number | undefined;
}

/** The disk of an instance as an image. */
export interface CapturedImage {
  /** Id of the image in the provider, if it is stored there and outlives the instance. */
  readonly externalId?: string;
  /** Formats of {@link save}, the preferred one first. */
  readonly formats: readonly ImageFormat[];
  /**
   * Writes the image as a self-contained file. An image without {@link externalId} is lost with its instance.
   *
   * @throws ImageError `image-too-large`, `disk-full`, `conversion-failed`
   */
  save(format: ImageFormat, path: string, options?: SaveOptions): Promise<void>;
}

/** A captured image that is stored in the provider. */
export interface StoredCapture extends CapturedImage {
  readonly externalId: string;
  /** Image-id of the {@link CaptureRequest}. */
  readonly imageId: string;
  readonly capturedAt: Date;
  /** Removes the image from the provider. */
  discard(options?: OperationOptions): Promise<void>;
}

/**
 * A machine of a build. Processes other than the one that launched it may make all calls. Calls reject with the reason
 * of the signal when it aborts.
 */
export interface Instance {
  /** Id in the provider. */
  readonly id: string;
  readonly buildId: string;
  readonly launchedAt: Date;
  state(options?: OperationOptions): Promise<InstanceState>;
  /**
   * Returns the address at which the port of the {@link LaunchRequest} can be reached, even if no service responds yet.
   *
   * @throws ImageError `instance-failed`
   */
  address(options?: OperationOptions): Promise<InstanceAddress>;
  /**
   * Waits until `probe` resolves. Only the signal limits the time.
   *
   * @throws ImageError `instance-failed` if the instance has ended
   */
  waitReachable(probe: Probe, options?: OperationOptions): Promise<InstanceAddress>;
  /** Returns the last output of the serial console, as much as the provider keeps. */
  consoleLog(options?: OperationOptions): Promise<string>;
  /**
   * Returns the password that the instance's system set for its administrator, and reported only to the provider.
   * Undefined until then, and for a system that sets none. Absent if the provider reports no passwords.
   */
  password?(options?: OperationOptions): Promise<string | undefined>;
  /** Type of the screenshots. Default `png`. */
  readonly screenshotType?: 'png' | 'jpg';
  /** Writes a screenshot to a file. Absent if the provider does not support screenshots. */
  screenshot?(path: string, options?: OperationOptions): Promise<void>;
  /**
   * Powers the instance off like the power button and waits until it is off. Only the signal limits the time. Succeeds
   * if the instance is already off.
   *
   * @throws ImageError `instance-failed` if it ends in another way
   */
  stop(options?: OperationOptions): Promise<void>;
  /**
   * Waits until the system powers itself off.
   *
   * @throws ImageError `instance-failed` if it ends in another way
   */
  waitStopped(options?: OperationOptions): Promise<void>;
  /**
   * Captures the disk of a stopped instance.
   *
   * @throws ImageError `instance-failed` if it is not stopped
   */
  capture(request: CaptureRequest, options?: OperationOptions): Promise<CapturedImage>;
  /**
   * Ends the instance in any state and removes its resources. A missing instance is not an error.
   *
   * @throws ImageError `cleanup-failed`
   */
  destroy(options?: OperationOptions): Promise<void>;
}

/** Result of {@link InstanceProvider.describeImage}. */
export type ImageDescription = Pick<Material, 'digest' | 'annotations'>;

/**
 * The narrow interface to a provider that runs machines. Every implementation passes `instanceProviderContract` of the
 * `/testing` entry.
 */
export interface InstanceProvider {
  /** `providers[].name`. */
  readonly name: string;
  /**
   * Launches an instance. {@link list} returns it as soon as it uses any resource, even if this process dies. A failed
   * or aborted launch leaves nothing.
   *
   * @throws ImageError `launch-failed`, `image-not-found`, `format-unknown`, `command-not-found`, `disk-full`
   */
  launch(request: LaunchRequest, options?: OperationOptions): Promise<Instance>;
  /** Lists the instances that this software launched and has not destroyed, including those of earlier processes. */
  list(options?: OperationOptions): Promise<readonly Instance[]>;
  /**
   * Lists complete and partial images in the provider that {@link Instance.capture} made, including those of earlier
   * processes, and that no upload has claimed. Absent if images are lost with their instances.
   */
  captures?(options?: OperationOptions): Promise<readonly StoredCapture[]>;
  /**
   * Describes the base image of a launch, as a material of a build: its id, and its digest if the provider reports one.
   * Undefined for an image that does not exist. Absent if only the names of images are known.
   */
  describeImage?(image: string, options?: OperationOptions): Promise<ImageDescription | undefined>;
  /** Checks what instances need, without changes and retries. */
  diagnose?(options?: CheckOptions): AsyncIterable<CheckResult>;
}
