/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/gloo/gloo_shim.h"

#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using gloo::transport::UnboundBuffer;

namespace {

/* Gloo's own limit of a wait closes all connections before it returns: the others would see them broken, and blame this rank before it
 * could say whom it waited for. So waits have no limit of Gloo's; this thread calls off those whose time is over, and leaves the
 * connections to cti_gloo_abort. */
class Deadlines {
  public:
    struct Wait {
        Clock::time_point end;
        UnboundBuffer *buffer; /* null: between two waits */
        bool is_over;
    };
    using Handle = std::list<Wait>::iterator;

    Deadlines() : thread_([this] { run(); }) {}

    ~Deadlines()
    {
        {
            const std::lock_guard<std::mutex> guard(lock_);
            is_closing_ = true;
        }
        wake_.notify_one();
        thread_.join();
    }

    Handle add(Clock::time_point end)
    {
        const std::lock_guard<std::mutex> guard(lock_);
        const Handle wait = waits_.insert(waits_.end(), Wait{end, nullptr, false});
        if (end < next_) { /* seldom: the limits of earlier calls end earlier */
            wake_.notify_one();
        }
        return wait;
    }

    void remove(Handle wait)
    {
        const std::lock_guard<std::mutex> guard(lock_);
        waits_.erase(wait);
    }

    /* While it lives, a wait on the buffer can be called off. */
    class Scope {
      public:
        Scope(Deadlines &deadlines, Handle wait, UnboundBuffer *buffer) : deadlines_(deadlines), wait_(wait)
        {
            const std::lock_guard<std::mutex> guard(deadlines_.lock_);
            wait_->buffer = wait_->is_over ? nullptr : buffer;
            buffer_ = wait_->buffer;
        }
        ~Scope()
        {
            const std::lock_guard<std::mutex> guard(deadlines_.lock_);
            wait_->buffer = nullptr;
        }
        Scope(const Scope &) = delete;
        Scope &operator=(const Scope &) = delete;

        UnboundBuffer *buffer() const
        {
            return buffer_;
        }

      private:
        Deadlines &deadlines_;
        Handle wait_;
        UnboundBuffer *buffer_;
    };

  private:
    void run()
    {
        std::unique_lock<std::mutex> guard(lock_);
        while (!is_closing_) {
            const auto now = Clock::now();
            next_ = Clock::time_point::max();
            for (Wait &wait : waits_) {
                if (wait.end <= now) {
                    /* Again after a while: flags of Gloo's are of one wait, and may be taken by one that had ended. */
                    wait.is_over = true;
                    next_ = now + milliseconds(20);
                    if (wait.buffer != nullptr) {
                        wait.buffer->abortWaitRecv();
                        wait.buffer->abortWaitSend();
                    }
                } else if (wait.end < next_) {
                    next_ = wait.end;
                }
            }
            if (next_ == Clock::time_point::max()) {
                wake_.wait(guard);
            } else {
                wake_.wait_until(guard, next_);
            }
        }
    }

    std::mutex lock_;
    std::condition_variable wake_;
    std::list<Wait> waits_;
    Clock::time_point next_ = Clock::time_point::max(); /* when the thread looks next */
    bool is_closing_ = false;
    std::thread thread_; /* last: it uses the others */
};

class TimeOver {};

const milliseconds no_limit = std::chrono::hours(24 * 365); /* this Gloo takes 0 for "at once" */

class StoreFailed : public std::exception {
  public:
    const char *what() const noexcept override
    {
        return "the store failed";
    }
};

/* Gloo's store on top of ours. */
class Store : public gloo::rendezvous::Store {
  public:
    Store(const cti_gloo_store &store, int64_t timeout_ms) : store_(store), timeout_ms_(timeout_ms) {}

    void set(const std::string &key, const std::vector<char> &data) override
    {
        if (store_.set(store_.ctx, key.c_str(), data.data(), data.size()) != 0) {
            throw StoreFailed();
        }
    }

    std::vector<char> get(const std::string &key) override
    {
        std::vector<char> value;
        fetch(key, timeout_ms_, &value);
        return value;
    }

    void wait(const std::vector<std::string> &keys) override
    {
        wait(keys, milliseconds(timeout_ms_));
    }

    void wait(const std::vector<std::string> &keys, const milliseconds &timeout) override
    {
        for (const auto &key : keys) {
            std::vector<char> value;
            fetch(key, timeout.count() > 0 ? timeout.count() : timeout_ms_, &value);
        }
    }

  private:
    static void take(void *to, const void *data, size_t size)
    {
        const char *p = static_cast<const char *>(data);
        static_cast<std::vector<char> *>(to)->assign(p, p + size);
    }

    void fetch(const std::string &key, int64_t timeout_ms, std::vector<char> *value)
    {
        if (store_.get(store_.ctx, key.c_str(), timeout_ms, take, value) != 0) {
            throw StoreFailed();
        }
    }

    cti_gloo_store store_;
    int64_t timeout_ms_;
};

/* Gloo of 2022 takes a reference to the store, later ones a shared pointer. */
template <class Context>
auto connect(Context &context, std::shared_ptr<Store> store, std::shared_ptr<gloo::transport::Device> &device, int)
    -> decltype(context.connectFullMesh(*store, device))
{
    context.connectFullMesh(*store, device);
}

template <class Context>
auto connect(Context &context, std::shared_ptr<Store> store, std::shared_ptr<gloo::transport::Device> &device, long)
    -> decltype(context.connectFullMesh(store, device))
{
    context.connectFullMesh(store, device);
}

void say(char *text, size_t size, const char *what)
{
    std::snprintf(text, size, "%s", what);
}

/* Gloo has one exception for both; its words tell them apart. */
cti_gloo_result kind_of(const char *what)
{
    return std::string(what).find("imed out") != std::string::npos ? CTI_GLOO_TIMEOUT : CTI_GLOO_PEER;
}

/* Runs what may throw. */
template <class Function> cti_gloo_result guarded(char *text, size_t size, Function function)
{
    try {
        function();
        return CTI_GLOO_OK;
    } catch (const StoreFailed &e) {
        say(text, size, e.what());
        return CTI_GLOO_FAILED;
    } catch (const TimeOver &) {
        return CTI_GLOO_TIMEOUT;
    } catch (const gloo::IoException &e) {
        say(text, size, e.what());
        return kind_of(e.what());
    } catch (const std::bad_alloc &e) {
        say(text, size, "out of memory");
        return CTI_GLOO_FAILED;
    } catch (const std::exception &e) {
        say(text, size, e.what());
        return kind_of(e.what());
    } catch (...) {
        say(text, size, "an unknown exception");
        return CTI_GLOO_FAILED;
    }
}

} // namespace

struct cti_gloo {
    std::shared_ptr<Store> store;
    std::shared_ptr<gloo::transport::Device> device;
    std::shared_ptr<gloo::rendezvous::Context> context;
    Deadlines deadlines;
    std::mutex abort_lock;
    bool aborted = false;
};

extern "C" cti_gloo_result cti_gloo_open(const cti_gloo_store *store, int rank, int size, const char *host,
                                         const char *iface, int64_t timeout_ms, cti_gloo **out, char *text,
                                         size_t text_size)
{
    return guarded(text, text_size, [&] {
        auto made = std::make_unique<cti_gloo>();
        gloo::transport::tcp::attr attr;
        if (iface != nullptr) {
            attr.iface = iface;
        } else {
            attr.hostname = host;
        }
        made->store = std::make_shared<Store>(*store, timeout_ms);
        made->device = gloo::transport::tcp::CreateDevice(attr);
        made->context = std::make_shared<gloo::rendezvous::Context>(rank, size);
        made->context->setTimeout(milliseconds(timeout_ms));
        connect(*made->context, made->store, made->device, 0);
        *out = made.release();
    });
}

extern "C" void cti_gloo_abort(cti_gloo *gloo)
{
    const std::lock_guard<std::mutex> guard(gloo->abort_lock);
    if (!gloo->aborted) {
        gloo->aborted = true;
        char text[8];
        (void)guarded(text, sizeof text, [&] { gloo->context->closeConnections(); });
    }
}

extern "C" void cti_gloo_close(cti_gloo *gloo)
{
    if (gloo != nullptr) {
        cti_gloo_abort(gloo);
        char text[8];
        (void)guarded(text, sizeof text, [&] {
            gloo->context.reset();
            gloo->device.reset();
        });
        delete gloo;
    }
}

extern "C" cti_gloo_result cti_gloo_exchange(cti_gloo *gloo, const int *world_ranks,
                                             const ct_comm_message *messages, int n, int64_t timeout_ms, int *out_peer,
                                             char *text, size_t text_size)
{
    *out_peer = -1;
    const auto wait = gloo->deadlines.add(Clock::now() + milliseconds(timeout_ms));
    const cti_gloo_result result = guarded(text, text_size, [&] {
        std::vector<std::unique_ptr<UnboundBuffer>> buffers;
        buffers.reserve(static_cast<size_t>(n));
        for (int i = 0; i < n; i++) {
            const ct_comm_message &m = messages[i];
            *out_peer = world_ranks[m.peer];
            buffers.push_back(gloo->context->createUnboundBuffer(m.data, m.size_bytes));
            if (m.is_send) {
                buffers.back()->send(*out_peer, m.tag);
            } else {
                buffers.back()->recv(*out_peer, m.tag);
            }
        }
        for (int i = 0; i < n; i++) {
            *out_peer = world_ranks[messages[i].peer];
            const Deadlines::Scope scope(gloo->deadlines, wait, buffers[static_cast<size_t>(i)].get());
            UnboundBuffer *buffer = scope.buffer(); /* null: the time is over */
            if (buffer == nullptr || !(messages[i].is_send ? buffer->waitSend(no_limit) : buffer->waitRecv(no_limit))) {
                throw TimeOver();
            }
        }
    });
    gloo->deadlines.remove(wait);
    return result;
}
